import type { Connection } from './connection.ts';
import { BrokenItemError } from './errors.ts';
import type { ConnectionsTable } from './tables/connections.ts';

/** BatchGetItem takes no more keys. */
const mostKeys = 100;

export type Items = { found: Connection[]; broken: { pk: string; message: string }[] };

/**
 * Reads many items at once, in the order of their keys; missing ones are left out. One item that somebody broke by hand
 * must not hide all the others, so it is named instead.
 */
export async function readItems(table: Pick<ConnectionsTable, 'get' | 'getAll'>, pks: string[]): Promise<Items> {
  const keys = [...new Set(pks)];
  const chunks: string[][] = [];
  for (let start = 0; start < keys.length; start += mostKeys) chunks.push(keys.slice(start, start + mostKeys));
  const items = await Promise.all(chunks.map((chunk) => readChunk(table, chunk)));
  const byKey = new Map(items.flatMap(({ found }) => found).map((item) => [item.pk, item]));
  return { found: keys.flatMap((pk) => byKey.get(pk) ?? []), broken: items.flatMap(({ broken }) => broken) };
}

async function readChunk(table: Pick<ConnectionsTable, 'get' | 'getAll'>, pks: string[]): Promise<Items> {
  try {
    return { found: await table.getAll(pks), broken: [] };
  } catch (fault) {
    if (!(fault instanceof BrokenItemError)) throw fault;
  }
  const each = await Promise.all(pks.map((pk) => readOne(table, pk)));
  return { found: each.flatMap(({ found }) => found), broken: each.flatMap(({ broken }) => broken) };
}

async function readOne(table: Pick<ConnectionsTable, 'get'>, pk: string): Promise<Items> {
  try {
    const item = await table.get(pk);
    return { found: item ? [item] : [], broken: [] };
  } catch (fault) {
    if (!(fault instanceof BrokenItemError)) throw fault;
    return { found: [], broken: [{ pk, message: fault.message }] };
  }
}
