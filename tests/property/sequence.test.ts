import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  completeUpTo,
  counterKey,
  isLater,
  laterOf,
  partKey,
  type Seq,
  type StoredKey,
  seqKey,
  toSeq,
  unnumberedKey,
} from '../../shared/sequence.ts';

const seq = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String);

describe('keys', () => {
  test('sort as text in the order of their numbers, parts and frames without a number in between', () => {
    fc.assert(
      fc.property(seq, seq, (a, b) => {
        fc.pre(BigInt(a) < BigInt(b));
        const inOrder = [seqKey(a), partKey(seqKey(a), 1), partKey(seqKey(a), 10), unnumberedKey(a, 7, 1), seqKey(b)];
        expect([...inOrder].reverse().sort()).toEqual(inOrder);
        expect(isLater(b, a)).toBe(true);
        expect(isLater(a, b)).toBe(false);
        expect(laterOf(a, b)).toBe(b);
      }),
    );
  });

  test('of a source that does not number sort by epoch, then by counter, and never like a number', () => {
    const number = fc.integer({ min: 0, max: 10 ** 12 - 1 });
    fc.assert(
      fc.property(number, number, number, number, (epoch, counter, otherEpoch, otherCounter) => {
        const before = epoch < otherEpoch || (epoch === otherEpoch && counter < otherCounter);
        expect(counterKey(epoch, counter) < counterKey(otherEpoch, otherCounter)).toBe(before);
        expect(counterKey(epoch, counter)).not.toMatch(/^\d{20}(#|$)/);
      }),
    );
  });

  test.each<[unknown, Seq | undefined]>([
    [0, '0'],
    [17, '17'],
    ['0017', '17'],
    ['18446744073709551615', '18446744073709551615'],
    ['18446744073709551616', undefined],
    [2 ** 53, undefined],
    [-1, undefined],
    [1.5, undefined],
    ['', undefined],
    ['1e3', undefined],
    [' 1', undefined],
    [null, undefined],
  ])('%j is number %j', (value, expected) => {
    expect(toSeq(value)).toBe(expected);
  });
});

/** One frame on its way to the table: numbered or not, in one or more parts. */
type Frame = { seq: Seq | undefined; keys: string[] };
type Case = { frames: Frame[]; stored: StoredKey[]; known: Seq | undefined; truncated: boolean; lost: Set<string> };

const frameShape = fc.record({
  gap: fc.integer({ min: 1, max: 3 }),
  parts: fc.integer({ min: 1, max: 3 }),
  numbered: fc.boolean(),
});

/** Frames as a worker writes them, each naming its predecessor, and some of the newest lost on the way. */
const storedCase: fc.Arbitrary<Case> = fc
  .record({
    shapes: fc.array(frameShape, { minLength: 1, maxLength: 25 }),
    /** How many frames at the end were still on the way. */
    onTheWay: fc.integer({ min: 0, max: 12 }),
    lost: fc.infiniteStream(fc.boolean()),
    knownBack: fc.integer({ min: 0, max: 8 }),
    leftOut: fc.nat({ max: 10 }),
  })
  .map(({ shapes, onTheWay, lost, knownBack, leftOut }) => {
    let last: bigint | undefined;
    let counter = 0;
    const frames: Frame[] = shapes.map(({ gap, parts, numbered }) => {
      if (numbered) last = (last ?? 0n) + BigInt(gap);
      const number = last === undefined ? undefined : String(last);
      const key = numbered ? seqKey(number ?? '0') : unnumberedKey(number, 5, counter++);
      return {
        seq: numbered ? number : undefined,
        keys: Array.from({ length: parts }, (_, part) => partKey(key, part)),
      };
    });
    const certain = Math.max(0, frames.length - onTheWay);
    const known = frames.slice(0, Math.max(0, certain - knownBack)).findLast((frame) => frame.seq !== undefined)?.seq;
    const rows: (StoredKey & { certain: boolean })[] = [];
    let prev: string | undefined;
    frames.forEach(({ keys }, index) => {
      keys.forEach((sk, part) => {
        rows.push({ sk, prev, more: part < keys.length - 1, certain: index < certain });
        prev = sk;
      });
    });
    const gone = new Set(rows.filter((row) => !row.certain && lost.next().value === true).map(({ sk }) => sk));
    // A query that doesn't reach the beginning leaves out the oldest, but shows more than what was on the way.
    const most = Math.max(0, Math.min(leftOut, rows.filter((row) => row.certain).length - 1));
    const stored = rows
      .filter(({ sk }) => !gone.has(sk))
      .slice(most)
      .map(({ sk, prev, more }) => ({ sk, prev, more }));
    return { frames, stored, known, truncated: most > 0, lost: gone };
  });

type Rule = typeof completeUpTo;

/** The position of the last numbered frame before the first one of which anything is lost, by looking at what was sent. */
function expected({ frames, known, lost, stored }: Case): Seq | undefined {
  const shown = new Set(stored.map(({ sk }) => sk));
  let complete = known;
  for (const frame of frames) {
    if (frame.keys.some((key) => lost.has(key))) return complete;
    if (frame.seq !== undefined && frame.keys.some((key) => shown.has(key))) complete = laterOf(frame.seq, complete);
  }
  return complete;
}

const neverPassesAHole = (rule: Rule) =>
  fc.property(storedCase, (given) => {
    const position = rule(given.stored, given.known, given.truncated);
    // Whatever came before a frame that it passes is stored as well, also what has no number.
    const last = given.frames.findLastIndex(
      ({ seq: number }) => number !== undefined && position !== undefined && !isLater(number, position),
    );
    const passed = given.frames.slice(0, last + 1).flatMap(({ keys }) => keys);
    expect(passed.filter((key) => given.lost.has(key))).toEqual([]);
    if (given.known !== undefined) expect(position === undefined || isLater(given.known, position)).toBe(false);
  });

const reachesTheHole = (rule: Rule) =>
  fc.property(storedCase, (given) => {
    expect(rule(given.stored, given.known, given.truncated)).toBe(expected(given));
  });

describe('the position', () => {
  test('never passes a message that is not stored, and never goes back', () => {
    fc.assert(neverPassesAHole(completeUpTo), { numRuns: 5000 });
  });

  test('reaches the last message before the first hole', () => {
    fc.assert(reachesTheHole(completeUpTo), { numRuns: 5000 });
  });

  const numberOf = (sk: string) => (/^\d{20}(#p\d+)?$/.test(sk) ? toSeq(sk.slice(0, 20)) : undefined);
  const broken: Record<string, Rule> = {
    'takes the newest that is stored': (keys, known) =>
      keys.reduce((position, { sk }) => laterOf(numberOf(sk), position), known),
    'forgets the parts that follow': (keys, known, truncated) =>
      completeUpTo(
        keys.map((key) => ({ ...key, more: false })),
        known,
        truncated,
      ),
    'goes on behind a hole': (keys, known) =>
      keys.reduce(
        (position, { sk, prev, more }) =>
          !more && (prev === undefined || keys.some((key) => key.sk === prev))
            ? laterOf(numberOf(sk), position)
            : position,
        known,
      ),
    'takes the first key for linked': (keys, known) => completeUpTo(keys, known, true),
  };
  test.each(Object.keys(broken))('is found out when it %s', (name) => {
    const rule = broken[name];
    if (!rule) throw new Error(name);
    expect(fc.check(neverPassesAHole(rule), { numRuns: 5000 }).failed).toBe(true);
  });

  test('is found out when it stops too early', () => {
    const tooEarly: Rule = (_keys, known) => known;
    expect(fc.check(reachesTheHole(tooEarly), { numRuns: 5000 }).failed).toBe(true);
  });
});
