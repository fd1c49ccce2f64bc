import { type Connection, pkOf, type SourceChoice } from '../../shared/connection.ts';
import type { ConnectionsTable } from '../../shared/tables/connections.ts';

type Wish = { wsUrl?: string; source?: SourceChoice };

/** What START and STOP write, and ways to look at it. */
export function wishes({ connections }: { connections: ConnectionsTable }) {
  const item = async (id: string): Promise<Connection> => {
    const found = await connections.get(pkOf(id));
    if (!found) throw new Error(`there is no item for ${id}`);
    return found;
  };
  const write = async (id: string, desiredState: 'STARTED' | 'STOPPED', wish: Wish): Promise<string> => {
    const pk = pkOf(id);
    const seen = await connections.get(pk);
    const generation = (seen?.generation ?? 0) + (desiredState === 'STARTED' ? 1 : 0);
    const { wsUrl = seen?.wsUrl ?? 'ws://source/x', source = seen?.source ?? { name: 'plain' } } = wish;
    const status = desiredState === 'STARTED' ? 'PENDING' : (seen?.status ?? 'PENDING');
    const intent = { desiredState, wsUrl, source, generation, status };
    // A worker was faster, and what it wrote has to be seen first. The API does the same.
    if ((await connections.want(pk, intent, seen, Date.now())) === 'refused') return write(id, desiredState, wish);
    return pk;
  };
  return {
    item,
    start: (id: string, wish: Wish = {}) => write(id, 'STARTED', wish),
    stop: (id: string) => write(id, 'STOPPED', {}),
  };
}
