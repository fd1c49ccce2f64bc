import { z } from 'zod';
import type { Clock } from '../shared/clock.ts';
import { type Connection, pkOf } from '../shared/connection.ts';
import type { ConnectionsTable } from '../shared/tables/connections.ts';
import type { WorkersTable } from '../shared/tables/workers.ts';
import { connectionView } from '../shared/view.ts';
import { check } from './check.ts';
import { connectionId } from './event-body.ts';
import type { Call, Reply } from './http.ts';
import { Refusal } from './refusal.ts';

const noParameters = z.strictObject({});
const pathParameters = z.object({ id: z.string() });
const connectionIdInPath = z.object({ id: connectionId });

/** GET /connections/{id}: everything about one connection. */
export function showConnection(parts: {
  connections: Pick<ConnectionsTable, 'get'>;
  workers: Pick<WorkersTable, 'get'>;
  clock: Clock;
}): (call: Call) => Promise<Reply> {
  return async ({ path, query }) => {
    check(noParameters, query);
    const { id: sent } = check(pathParameters, path);
    // API Gateway gives the id as it stands in the path, serverless-offline has decoded it. So an id with a `%` may be
    // decoded once too often here: then it is the one that was sent.
    const ids = [...new Set([decoded(sent), sent])].filter((id) => connectionId.safeParse(id).success);
    if (ids.length === 0) check(connectionIdInPath, { id: decoded(sent) });
    const connection = await firstOf(ids);
    if (!connection)
      throw new Refusal(404, 'unknown_connection', 'there is no such connection', { connection_id: ids[0] });
    return { status: 200, body: connectionView(await asHeld(connection), parts.clock.now()) };
  };

  /** A lease counts only as long as its worker lives: with a tombstone on the owner, it is over. */
  async function asHeld(connection: Connection): Promise<Connection> {
    const owner = connection.leaseOwner === undefined ? undefined : await parts.workers.get(connection.leaseOwner);
    if (owner?.expiredAtMs === undefined) return connection;
    return { ...connection, leaseExpiresAtMs: Math.min(connection.leaseExpiresAtMs, owner.expiredAtMs) };
  }

  async function firstOf(ids: string[]): Promise<Connection | undefined> {
    for (const id of ids) {
      const connection = await parts.connections.get(pkOf(id));
      if (connection) return connection;
    }
    return undefined;
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (fault) {
    if (fault instanceof URIError) return text;
    throw fault;
  }
}
