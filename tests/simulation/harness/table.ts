import type { Item } from '../../../shared/tables/item.ts';
import { order, pickFrom } from './expressions.ts';

/** The names of the tables in every simulation. */
export const tableNames = { connections: 'connections', workers: 'workers', messages: 'messages' };

export type KeyShape = { hash: string; range?: string };
export type IndexShape = KeyShape & { name: string /** Beside the keys. */; also: string[] };
export type TableShape = { key: KeyShape; indexes?: IndexShape[] };

/** What the deployed tables look like: see deploy/tables.yml. */
export const tableShapes: Record<string, TableShape> = {
  [tableNames.connections]: {
    key: { hash: 'pk' },
    indexes: [
      { name: 'by_desired_state', hash: 'desired_shard', range: 'lease_expires_at_ms', also: [] },
      { name: 'by_owner', hash: 'lease_owner', range: 'pk', also: ['desired_state', 'generation', 'lease_epoch'] },
    ],
  },
  [tableNames.workers]: { key: { hash: 'worker_id' } },
  [tableNames.messages]: { key: { hash: 'pk', range: 'sk' } },
};

type Pending = { atMs: number; key: string; row: Item | undefined };

/** One index: a copy that follows its table after a while, each item's changes in their order. */
class Index {
  readonly shape: IndexShape;
  readonly attributes: string[];
  readonly #rows = new Map<string, Item>();
  readonly #pending: Pending[] = [];
  readonly #newest = new Map<string, { atMs: number; row: Item | undefined }>();

  constructor(shape: IndexShape, tableKey: KeyShape) {
    this.shape = shape;
    this.attributes = [...new Set([...keysOf(shape), ...keysOf(tableKey), ...shape.also])];
  }

  follow(key: string, item: Item | undefined, nowMs: number, lagMs: number): void {
    const indexed = item !== undefined && keysOf(this.shape).every((name) => item[name] !== undefined);
    const row = indexed ? pickFrom(item, this.attributes) : undefined;
    const newest = this.#newest.get(key);
    if (sameRow(newest?.row, row, this.attributes)) return;
    const atMs = Math.max(nowMs + lagMs, newest?.atMs ?? 0);
    this.#newest.set(key, { atMs, row });
    this.#pending.push({ atMs, key, row });
  }

  rows(nowMs: number): Iterable<Item> {
    if (this.#pending.length > 0) this.#settle(nowMs);
    return this.#rows.values();
  }

  #settle(nowMs: number): void {
    // An item's changes stand in their order, so the last one that is due wins.
    let kept = 0;
    for (const pending of this.#pending) {
      if (pending.atMs > nowMs) this.#pending[kept++] = pending;
      else if (pending.row) this.#rows.set(pending.key, pending.row);
      else this.#rows.delete(pending.key);
    }
    this.#pending.length = kept;
  }
}

/** The true state of one table, and what its indexes show of it. Items are never changed in place. */
export class Table {
  readonly shape: TableShape;
  readonly #indexes: Map<string, Index>;
  readonly #items = new Map<string, Item>();
  readonly #byHash = new Map<string, Map<string, Item>>();
  readonly #before = new Map<string, { item: Item | undefined; untilMs: number }>();

  constructor(shape: TableShape) {
    this.shape = shape;
    this.#indexes = new Map((shape.indexes ?? []).map((index) => [index.name, new Index(index, shape.key)]));
  }

  keyOf(item: Item): string {
    return keysOf(this.shape.key)
      .map((name) => item[name]?.S ?? item[name]?.N ?? '')
      .join('\n');
  }

  get(key: string): Item | undefined {
    return this.#items.get(key);
  }

  /** What a read that isn't consistent may still show: the state before the last write. */
  stale(key: string, readMs: number): Item | undefined {
    const before = this.#before.get(key);
    return before && before.untilMs > readMs ? before.item : this.#items.get(key);
  }

  /** @param lagMs how long it takes until an index, or a read that isn't consistent, shows it */
  put(key: string, item: Item | undefined, nowMs: number, lagMs: (index: boolean) => number): void {
    const { hash, range } = this.shape.key;
    const before = this.#items.get(key);
    this.#before.set(key, { item: before, untilMs: nowMs + lagMs(false) });
    if (item) this.#items.set(key, item);
    else this.#items.delete(key);
    const sample = item ?? before;
    if (range !== undefined && sample) {
      const hashValue = sample[hash]?.S ?? '';
      const group = this.#byHash.get(hashValue) ?? new Map<string, Item>();
      this.#byHash.set(hashValue, group);
      if (item) group.set(key, item);
      else group.delete(key);
    }
    for (const index of this.#indexes.values()) index.follow(key, item, nowMs, lagMs(true));
  }

  all(): Iterable<Item> {
    return this.#items.values();
  }

  /** Everything that a query on the table or one of its indexes may go through, and the keys it is sorted by. */
  source(indexName: string | undefined, hashValue: string, nowMs: number): { rows: Item[]; key: KeyShape } {
    if (indexName === undefined) {
      const { key } = this.shape;
      const one = this.#items.get(hashValue);
      const rows = key.range === undefined ? (one ? [one] : []) : [...(this.#byHash.get(hashValue)?.values() ?? [])];
      return { rows, key };
    }
    const index = this.#indexes.get(indexName);
    if (!index) throw new Error(`no index ${indexName}`);
    const { shape } = index;
    return { rows: [...index.rows(nowMs)].filter((row) => row[shape.hash]?.S === hashValue), key: shape };
  }

  /** By the sort key, then by the table's own key, as a page goes on from there. */
  compare(a: Item, b: Item, key: KeyShape): number {
    for (const name of [...(key.range === undefined ? [] : [key.range]), ...keysOf(this.shape.key)]) {
      const difference = order(a[name], b[name]) ?? 0;
      if (difference !== 0) return difference;
    }
    return 0;
  }

  startKey(row: Item, key: KeyShape): Item {
    return pickFrom(row, [...new Set([...keysOf(key), ...keysOf(this.shape.key)])]);
  }
}

/** Empty ones, by their names. */
export function newTables(): Record<string, Table> {
  return Object.fromEntries(Object.entries(tableShapes).map(([name, shape]) => [name, new Table(shape)]));
}

export function keysOf({ hash, range }: KeyShape): string[] {
  return range === undefined ? [hash] : [hash, range];
}

function sameRow(a: Item | undefined, b: Item | undefined, names: string[]): boolean {
  if (a === b) return true;
  if (!a || !b) return false;
  return names.every((name) => a[name] === b[name] || JSON.stringify(a[name]) === JSON.stringify(b[name]));
}
