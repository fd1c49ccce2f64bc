/**
 * What DynamoDB charges, as its documentation says it, each rule with the page that it comes from. Pages are of the Amazon
 * DynamoDB Developer Guide unless another one is named. A unit here is a request unit of on-demand mode.
 */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Item } from '../../shared/tables/item.ts';

const kilobyte = 1024;
const writeStep = kilobyte;
const readStep = 4 * kilobyte;

/** "DynamoDB item sizes and formats": an item weighs what its attributes' names (in UTF-8) and values weigh together. */
export function itemBytes(item: Item): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(item)) bytes += Buffer.byteLength(name) + valueBytes(value);
  return bytes;
}

/**
 * "DynamoDB item sizes and formats": text weighs its UTF-8 bytes, binary its raw bytes, null and booleans one byte, a
 * number one byte for two significant digits and one more, a list or a map three bytes, and one for each element.
 */
function valueBytes(value: AttributeValue): number {
  if (value.S !== undefined) return Buffer.byteLength(value.S);
  if (value.N !== undefined) return numberBytes(value.N);
  if (value.B !== undefined) return value.B.length;
  if (value.BOOL !== undefined || value.NULL !== undefined) return 1;
  if (value.M !== undefined) return 3 + Object.keys(value.M).length + itemBytes(value.M);
  if (value.L !== undefined) return value.L.reduce((sum, element) => sum + 1 + valueBytes(element), 3);
  if (value.SS !== undefined) return value.SS.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (value.NS !== undefined) return value.NS.reduce((sum, number) => sum + numberBytes(number), 0);
  throw new Error(`no rule for ${Object.keys(value).join()}`);
}

/** Zeros at either end aren't significant, and so weigh nothing. */
function numberBytes(digits: string): number {
  const significant = digits.replace(/[-.]/g, '').replace(/^0+|0+$/g, '');
  return Math.ceil(significant.length / 2) + 1;
}

/** "DynamoDB read and write operations", write consumption: a unit for each kilobyte begun, one at least. */
export const writeUnits = (bytes: number): number => Math.max(1, Math.ceil(bytes / writeStep));

/**
 * "DynamoDB read and write operations", read consumption: a unit for each 4 KB begun, half of that when the read needn't be
 * consistent. What isn't there is charged like the smallest item.
 */
export function readUnits(bytes: number, consistent: boolean): number {
  return Math.max(1, Math.ceil(bytes / readStep)) * (consistent ? 1 : 0.5);
}

/** The same page, PutItem, UpdateItem and DeleteItem: the larger of the item before and the item after is what counts. */
export function tableWriteUnits(before: Item | undefined, after: Item | undefined): number {
  return writeUnits(Math.max(before ? itemBytes(before) : 0, after ? itemBytes(after) : 0));
}

/**
 * The same page, conditional writes: one that is refused is charged all the same. The text goes by the size of the item
 * that is there; where there is none, one unit.
 */
export const refusedWriteUnits = (before: Item | undefined): number => (before ? writeUnits(itemBytes(before)) : 1);

/** An index: which attributes its entries are sorted by, and which they hold beside those. */
export type IndexShape = { name: string; keys: string[]; attributes: string[] };

/** "Using Global Secondary Indexes in DynamoDB", sparse: an item that lacks a key of the index has no entry in it. */
export function entryOf(item: Item | undefined, index: IndexShape): Item | undefined {
  if (!item) return undefined;
  const entry: Item = {};
  for (const name of index.attributes) {
    const value = item[name];
    if (value !== undefined) entry[name] = value;
    else if (index.keys.includes(name)) return undefined;
  }
  return entry;
}

/**
 * "Using Global Secondary Indexes in DynamoDB", provisioned throughput considerations, write capacity units:
 * an entry that comes, goes, or changes beside its keys is one write; one whose key changes is two, a delete and a put;
 * one that stays as it is costs nothing. Each write is rounded up to kilobytes by the size of the entry.
 */
export function indexWriteUnits(before: Item | undefined, after: Item | undefined, index: IndexShape): number {
  const old = entryOf(before, index);
  const now = entryOf(after, index);
  if (!old && !now) return 0;
  if (!old || !now) return writeUnits(itemBytes(old ?? now ?? {}));
  if (!sameIn(index.keys, old, now)) return writeUnits(itemBytes(old)) + writeUnits(itemBytes(now));
  if (sameIn(index.attributes, old, now)) return 0;
  return writeUnits(Math.max(itemBytes(old), itemBytes(now)));
}

function sameIn(names: string[], a: Item, b: Item): boolean {
  return names.every((name) => a[name] === b[name] || JSON.stringify(a[name]) === JSON.stringify(b[name]));
}
