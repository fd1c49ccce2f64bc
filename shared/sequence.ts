/**
 * Sort keys of stored messages. They sort as text in the order in which the messages came, and the same message gets
 * the same key each time it comes, so that storing it twice leaves one item.
 *
 *   00000000000000000017            the source's own number 17
 *   00000000000000000017#p00001     its second part, where the frame didn't fit one item
 *   00000000000000000017#u…         a frame without a number, after 17 (epoch and counter follow)
 *   001790000000#000000000012       a source that doesn't number: epoch and counter
 */

/** A source's sequence number, in decimal digits: it may be over 2^53. Unsigned 64 bit at most. */
export type Seq = string;

const seqDigits = 20;
const epochDigits = 12;
const counterDigits = 12;
const partDigits = 5;

export const seqKey = (seq: Seq): string => seq.padStart(seqDigits, '0');

export const counterKey = (epoch: number, counter: number): string =>
  `${String(epoch).padStart(epochDigits, '0')}#${String(counter).padStart(counterDigits, '0')}`;

export const unnumberedKey = (after: Seq | undefined, epoch: number, counter: number): string =>
  `${seqKey(after ?? '0')}#u${counterKey(epoch, counter)}`;

/** Whether a key belongs to a source that numbers. */
export const isOfNumbered = (key: string): boolean => /^\d{20}(#|$)/.test(key);

export const isUnnumbered = (key: string): boolean => key.startsWith('#u', seqDigits);

export const partKey = (key: string, part: number): string =>
  part === 0 ? key : `${key}#p${String(part).padStart(partDigits, '0')}`;

/** @returns the number as text without leading zeros; undefined when it isn't a whole number from 0 to 2^64-1 */
export function toSeq(value: unknown): Seq | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? String(value) : undefined;
  if (typeof value !== 'string' || !/^\d{1,20}$/.test(value)) return undefined;
  const number = BigInt(value);
  return number < 2n ** 64n ? String(number) : undefined;
}

export function isLater(a: Seq, b: Seq | undefined): boolean {
  return b === undefined || a.length > b.length || (a.length === b.length && a > b);
}

export const laterOf = (a: Seq | undefined, b: Seq | undefined): Seq | undefined =>
  a !== undefined && isLater(a, b) ? a : b;

/** What recovery needs to know of a stored message. */
export type StoredKey = {
  sk: string;
  /** The key stored right before it in the same connection. */
  prev: string | undefined;
  /** More parts of the same frame follow. */
  more: boolean;
};

/**
 * Up to where the stored messages are complete. Messages are written several batches at once, and a batch isn't stored
 * as a whole, so the newest stored message alone proves nothing about the ones before it: a worker that died may have
 * left a hole. Each message names its predecessor; the first one whose predecessor is missing is where the hole is.
 * @param keys      the newest keys, oldest first
 * @param known     the position in the connection's item: up to there all is stored
 * @param truncated older keys exist. Then `keys` must be more than one connection may have on the way to the table.
 * @returns the number of the last message before the first hole, `known` at least
 */
export function completeUpTo(keys: StoredKey[], known: Seq | undefined, truncated: boolean): Seq | undefined {
  const upTo = known === undefined ? undefined : seqKey(known);
  const covered = (key: string) => {
    const number = key.slice(0, seqDigits);
    // A frame without a number came after the one that it is named by, so that one's being stored says nothing of it.
    return upTo !== undefined && (number < upTo || (number === upTo && !key.startsWith('#u', seqDigits)));
  };
  let complete = known;
  let before: string | undefined;
  for (const { sk, prev, more } of keys) {
    const first = before === undefined && (truncated || prev === undefined);
    const linked = first || (prev !== undefined && (prev === before || covered(prev)));
    if (!linked) break;
    before = sk;
    if (!more) complete = laterOf(seqOf(sk), complete) ?? complete;
  }
  return complete;
}

function seqOf(sk: string): Seq | undefined {
  const digits = /^(\d{20})(#p\d+)?$/.exec(sk)?.[1];
  return digits === undefined ? undefined : toSeq(digits);
}
