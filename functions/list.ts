import { z } from 'zod';
import type { Clock } from '../shared/clock.ts';
import { bucketOf, buckets, type Connection, idOf } from '../shared/connection.ts';
import { isInvalidRequest } from '../shared/errors.ts';
import { readItems } from '../shared/items.ts';
import type { ConnectionsTable } from '../shared/tables/connections.ts';
import { connectionView } from '../shared/view.ts';
import { check } from './check.ts';
import {
  badCursor,
  type Cursor,
  decodeCursor,
  encodeCursor,
  type OwnerCursor,
  ofOwner,
  ofState,
  type StateCursor,
} from './cursor.ts';
import type { Call, Reply } from './http.ts';
import { Refusal } from './refusal.ts';

export type ListParts = {
  connections: Pick<ConnectionsTable, 'get' | 'getAll' | 'inBucket' | 'ownedBy'>;
  shards: number;
  clock: Clock;
};

const limitMessage = 'must be a whole number from 1 to 500';

const query = z.strictObject({
  state: z.enum(buckets, { error: `must be one of: ${buckets.join(', ')}` }).optional(),
  owner: z.string().min(1).max(256).optional(),
  limit: z
    .string()
    .regex(/^\d{1,3}$/, limitMessage)
    .default('100')
    .transform(Number)
    .pipe(z.number().min(1, limitMessage).max(500, limitMessage)),
  cursor: z.string().optional(),
});

type Keys = { pks: string[]; next: Cursor | undefined };

/**
 * GET /connections: a page of them, by state or by owner; without either, all. `state` is what is wanted, with FAILED for
 * what is wanted but was given up. A page is full as long as more follow, but for connections that changed while it was
 * put together. The index is sorted by the end of the lease, so one that is renewed meanwhile may show on two pages.
 */
export function listConnections({ connections, shards, clock }: ListParts): (call: Call) => Promise<Reply> {
  return async (call) => {
    const { state, owner, limit, cursor } = check(query, call.query);
    if (state !== undefined && owner !== undefined) {
      // No index has both, and a filter on one of them would leave pages half empty.
      throw new Refusal(400, 'bad_request', [{ field: 'owner', message: 'and state go only one at a time' }]);
    }
    const place = cursor === undefined ? undefined : decodeCursor(cursor);
    const { pks, next } = await keys(state ?? 'all', owner, limit, place);
    const { found, broken } = await readItems(connections, pks);
    const now = clock.now();
    const asked = (connection: Connection) =>
      owner === undefined ? state === undefined || bucketOf(connection) === state : connection.leaseOwner === owner;
    return {
      status: 200,
      body: {
        connections: found.filter(asked).map((connection) => connectionView(connection, now)),
        ...(broken.length === 0
          ? {}
          : { broken: broken.map(({ pk, message }) => ({ connection_id: idOf(pk), message })) }),
        cursor: next ? encodeCursor(next) : null,
      },
    };
  };

  async function keys(
    state: StateCursor['state'],
    owner: string | undefined,
    limit: number,
    place: Cursor | undefined,
  ): Promise<Keys> {
    try {
      if (owner !== undefined) return await ownedKeys(owner, limit, ofOwner(owner, place));
      return await stateKeys(state, limit, ofState(state, place));
    } catch (fault) {
      // The rest of the query is ours, so it can only be the key in the cursor.
      if (place && isInvalidRequest(fault)) throw badCursor('is none that came from here');
      throw fault;
    }
  }

  /** Fills the page from one part of the index after the other. */
  async function stateKeys(state: StateCursor['state'], limit: number, place: StateCursor | undefined): Promise<Keys> {
    const parts = (state === 'all' ? buckets : [state]).flatMap((bucket) =>
      Array.from({ length: shards }, (_, shard) => ({ bucket, shard })),
    );
    const start = place ? parts.findIndex(({ bucket, shard }) => bucket === place.bucket && shard === place.shard) : 0;
    if (start < 0) throw badCursor('is none that came from here');
    const pks: string[] = [];
    let from = place?.from;
    for (const { bucket, shard } of parts.slice(start)) {
      do {
        if (pks.length >= limit) return { pks, next: { state, bucket, shard, from } };
        const page = await connections.inBucket(bucket, shard, { limit: limit - pks.length, from });
        pks.push(...page.rows.map(({ pk }) => pk));
        from = page.next;
      } while (from);
    }
    return { pks, next: undefined };
  }

  async function ownedKeys(owner: string, limit: number, place: OwnerCursor | undefined): Promise<Keys> {
    const page = await connections.ownedBy(owner, place?.from, limit);
    return { pks: page.rows.map(({ pk }) => pk), next: page.next && { owner, from: page.next } };
  }
}
