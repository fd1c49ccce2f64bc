import type { ConnectionsTable, OwnedRow } from './tables/connections.ts';
import type { Item } from './tables/item.ts';

/** All that a worker owns by the index, page by page to the end. */
export async function ownedBy(
  { connections }: { connections: Pick<ConnectionsTable, 'ownedBy'> },
  workerId: string,
): Promise<OwnedRow[]> {
  const rows: OwnedRow[] = [];
  let from: Item | undefined;
  do {
    const page = await connections.ownedBy(workerId, from);
    rows.push(...page.rows);
    from = page.next;
  } while (from);
  return rows;
}
