/** One table in memory, and its indexes, which follow it after a while. Items are never changed in place. */
import type { Item } from '../../shared/tables/item.ts';
import { order } from '../../tests/simulation/harness/expressions.ts';
import type { TableShape } from './tables.ts';
import { entryOf, itemBytes } from './units.ts';

/** What an index shows of one item. */
export type Entry = { item: Item; bytes: number };
type Group = { entries: Map<string, Entry>; sorted: Entry[] | undefined };
type Change = { atMs: number; key: string; entry: Item | undefined };

class Index {
  readonly shape: TableShape['indexes'][number];
  readonly #groups = new Map<string, Group>();
  readonly #hashOf = new Map<string, string>();
  #coming: Change[] = [];

  constructor(shape: TableShape['indexes'][number]) {
    this.shape = shape;
  }

  follow(key: string, item: Item | undefined, atMs: number): void {
    this.#coming.push({ atMs, key, entry: entryOf(item, this.shape) });
  }

  /** All entries under one key of the index, by its sort key and then by the table's own. */
  under(hash: string, nowMs: number, compare: (a: Item, b: Item) => number): Entry[] {
    this.#catchUp(nowMs);
    const group = this.#groups.get(hash);
    if (!group) return [];
    group.sorted ??= [...group.entries.values()].sort((a, b) => compare(a.item, b.item));
    return group.sorted;
  }

  #catchUp(nowMs: number): void {
    // The lag is the same for all, so they stand in their order.
    const left = this.#coming.findIndex(({ atMs }) => atMs > nowMs);
    const due = left === -1 ? this.#coming : this.#coming.slice(0, left);
    this.#coming = left === -1 ? [] : this.#coming.slice(left);
    for (const { key, entry } of due) this.#apply(key, entry);
  }

  #apply(key: string, entry: Item | undefined): void {
    const before = this.#groups.get(this.#hashOf.get(key) ?? '');
    if (before?.entries.delete(key)) before.sorted = undefined;
    this.#hashOf.delete(key);
    if (!entry) return;
    const hash = entry[this.shape.hash]?.S ?? '';
    const group = this.#groups.get(hash) ?? { entries: new Map<string, Entry>(), sorted: undefined };
    this.#groups.set(hash, group);
    group.entries.set(key, { item: entry, bytes: itemBytes(entry) });
    group.sorted = undefined;
    this.#hashOf.set(key, hash);
  }
}

export class Table {
  readonly shape: TableShape;
  /** false: writes are only counted. For what is written once and never read again. */
  readonly keeps: boolean;
  readonly #items = new Map<string, Item>();
  readonly #indexes: Map<string, Index>;

  constructor(shape: TableShape, keeps: boolean) {
    this.shape = shape;
    this.keeps = keeps;
    this.#indexes = new Map(shape.indexes.map((index) => [index.name, new Index(index)]));
  }

  keyOf(item: Item): string {
    return this.shape.keys.map((name) => item[name]?.S ?? '').join('\n');
  }

  get(key: string): Item | undefined {
    return this.#items.get(key);
  }

  all(): Iterable<Item> {
    return this.#items.values();
  }

  put(key: string, item: Item, indexAtMs: number): void {
    if (!this.keeps) return;
    this.#items.set(key, item);
    for (const index of this.#indexes.values()) index.follow(key, item, indexAtMs);
  }

  /** @returns undefined: there is no such index */
  entries(indexName: string, hash: string, nowMs: number): Entry[] | undefined {
    const index = this.#indexes.get(indexName);
    return index?.under(hash, nowMs, (a, b) => this.#compare(index.shape.sort, a, b));
  }

  /** Of two entries of an index: which comes first. */
  compareIn(indexName: string, a: Item, b: Item): number {
    return this.#compare(this.#indexes.get(indexName)?.shape.sort, a, b);
  }

  #compare(sort: string | undefined, a: Item, b: Item): number {
    for (const name of sort === undefined ? this.shape.keys : [sort, ...this.shape.keys]) {
      const difference = order(a[name], b[name]) ?? 0;
      if (difference !== 0) return difference;
    }
    return 0;
  }
}
