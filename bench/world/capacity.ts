/**
 * What a table and its indexes take per second, with no credit from quiet times. Sources: Amazon DynamoDB Developer Guide,
 * "Understanding DynamoDB warm throughput in different scenarios" (a partition takes 1,000 write units a second, and
 * so does one key; an on-demand table begins with 4,000, and so does each index) and "Using Global Secondary Indexes",
 * throughput considerations (a write to the table needs capacity in every index that it changes).
 */
import type { Item } from '../../shared/tables/item.ts';
import type { Use } from './store.ts';
import type { TableShape } from './tables.ts';

export const unitsPerKey = 1000;

class Bucket {
  readonly #perSecond: number;
  #level: number;
  #atMs = 0;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
    this.#level = perSecond;
  }

  left(nowMs: number): number {
    const refilled = this.#level + ((nowMs - this.#atMs) / 1000) * this.#perSecond;
    this.#level = Math.min(this.#perSecond, refilled);
    this.#atMs = nowMs;
    return this.#level;
  }

  take(units: number): void {
    this.#level -= units;
  }
}

export class Capacity {
  throttled = 0;
  readonly #nowMs: () => number;
  readonly #perTable: number | undefined;
  readonly #buckets = new Map<string, Bucket>();

  /** @param perTable write units a second of each table and each index; undefined: enough partitions for anything */
  constructor(nowMs: () => number, perTable: number | undefined) {
    this.#nowMs = nowMs;
    this.#perTable = perTable;
  }

  /** Takes what the write needs everywhere, or nothing anywhere. */
  admits(shape: TableShape, before: Item | undefined, after: Item, uses: Use[]): boolean {
    const nowMs = this.#nowMs();
    const needs = uses.flatMap(({ target, write }) => [
      ...(this.#perTable === undefined ? [] : [{ bucket: this.#bucket(target, this.#perTable), units: write }]),
      ...this.#keys(shape, target, before, after, write),
    ]);
    if (needs.some(({ bucket, units }) => bucket.left(nowMs) < units)) {
      this.throttled++;
      return false;
    }
    for (const { bucket, units } of needs) bucket.take(units);
    return true;
  }

  /** An entry that moves from one key of an index to another is taken out there and put in here. */
  #keys(shape: TableShape, target: string, before: Item | undefined, after: Item, units: number) {
    const index = shape.indexes.find(({ name }) => target.endsWith(`/${name}`));
    if (!index) return [];
    const hashes = [before?.[index.hash]?.S, after[index.hash]?.S].filter((hash) => hash !== undefined);
    return hashes.map((hash) => ({
      bucket: this.#bucket(`${target}/${hash}`, unitsPerKey),
      units: units / hashes.length,
    }));
  }

  #bucket(name: string, perSecond: number): Bucket {
    const bucket = this.#buckets.get(name) ?? new Bucket(perSecond);
    this.#buckets.set(name, bucket);
    return bucket;
  }
}
