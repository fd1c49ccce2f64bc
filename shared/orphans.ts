import { type Connection, isOrphan } from './connection.ts';
import { readItems } from './items.ts';
import type { ConnectionsTable } from './tables/connections.ts';
import type { Item } from './tables/item.ts';

export type OrphanTable = Pick<ConnectionsTable, 'get' | 'getAll' | 'inBucket'>;

export type Orphans = {
  /** Keys of all that are wanted and that nobody owns. */
  pks: string[];
  oldestAgeMs: number;
  /** Items that nobody can read, so nobody can hold them either. */
  broken: { pk: string; message: string }[];
};

/** Items read for the ages. With more orphans than that, everybody knows already that something is wrong. */
const mostItems = 1000;

/**
 * Every connection that is wanted and whose lease has run out by now, or was never taken. All parts of the index at the
 * same time, each page by page to its end. One that waits for its next try has its lease in the future: it isn't due.
 *
 * The index lags a little behind, so what it shows is looked at once more in the items themselves, as far as they are read.
 */
export async function findOrphans(table: OrphanTable, shards: number, nowMs: number): Promise<Orphans> {
  const parts = await Promise.all(Array.from({ length: shards }, (_, shard) => expiredIn(table, shard, nowMs)));
  const pks = [...new Set(parts.flat())];
  const looked = pks.slice(0, mostItems);
  const { found, broken } = await readItems(table, looked);
  const orphans = found.filter((item) => isOrphan(item, nowMs));
  return {
    pks: [...orphans.map(({ pk }) => pk), ...pks.slice(mostItems)],
    oldestAgeMs: oldestAgeMs(orphans, nowMs),
    broken,
  };
}

/** An orphan is one since its lease ran out, or since it was started or given back, which is when it was last written. */
export function oldestAgeMs(orphans: Connection[], nowMs: number): number {
  return orphans.reduce((oldest, item) => {
    const since = Math.max(item.leaseExpiresAtMs, item.updatedAtMs);
    return Math.max(oldest, nowMs - since);
  }, 0);
}

async function expiredIn(table: OrphanTable, shard: number, nowMs: number): Promise<string[]> {
  const pks: string[] = [];
  let from: Item | undefined;
  do {
    const page = await table.inBucket('STARTED', shard, { expiredAtMs: nowMs, from });
    pks.push(...page.rows.map(({ pk }) => pk));
    from = page.next;
  } while (from);
  return pks;
}
