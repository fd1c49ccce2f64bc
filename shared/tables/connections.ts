import {
  BatchGetItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  QueryCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import { z } from 'zod';
import { type Bucket, bucketOf, type Connection, type DesiredState, type Intent, shardKey } from '../connection.ts';
import { isRefused } from '../errors.ts';
import { type Item, toConnection, updateOf, values } from './item.ts';

/** One row of the index `by_owner`. The index lags: a missing row is a reason to look at the item, never a verdict. */
export type OwnedRow = { pk: string; desiredState: DesiredState; generation: number; leaseEpoch: number };

export type Page<T> = { rows: T[]; next: Item | undefined };

export type ConnectionsTable = ReturnType<typeof connectionsTable>;

/**
 * What is wanted, and who looks at it. The lease on a connection is in `leases.ts`.
 * Everything here throws when DynamoDB doesn't answer; a write may then have been applied or not.
 */
export function connectionsTable(db: DynamoDBClient, table: string, options: { shards: number; stoppedTtlMs: number }) {
  return {
    /** Reads the item itself, not an index, and not a replica that may lag. */
    async get(pk: string): Promise<Connection | undefined> {
      const answer = await db.send(
        new GetItemCommand({ TableName: table, Key: { pk: { S: pk } }, ConsistentRead: true }),
      );
      return answer.Item && toConnection(answer.Item);
    },

    /**
     * Writes what is wanted, if the item still is as `seen`. Lease and position stay as they are.
     * @returns 'refused' when somebody else was faster: read again and decide again
     */
    async want(
      pk: string,
      intent: Intent,
      seen: Connection | undefined,
      nowMs: number,
    ): Promise<'written' | 'refused'> {
      const stopped = intent.desiredState === 'STOPPED';
      const change = updateOf({
        desired_state: intent.desiredState,
        desired_shard: shardKey(bucketOf(intent), pk, options.shards),
        ws_url: intent.wsUrl,
        source: intent.source,
        generation: intent.generation,
        status: intent.status,
        updated_at_ms: nowMs,
        // Seconds: DynamoDB's TTL counts in them.
        expires_at: stopped ? Math.ceil((nowMs + options.stoppedTtlMs) / 1000) : undefined,
        ...(intent.eventTimeMs === undefined ? {} : { event_time_ms: intent.eventTimeMs }),
        ...(stopped ? {} : { status_reason: undefined, attempts: 0 }),
        ...(seen ? {} : firstWrite(nowMs)),
        // Nobody owns it, so nobody is waiting for its next try: let the first worker have it.
        ...(seen && seen.leaseOwner === undefined ? { lease_expires_at_ms: 0 } : {}),
      });
      return write(pk, change, asSeen(seen));
    },

    /** Only remembers that a newer event was heard, so that an older one that comes later is known to be late. */
    async noteEventTime(pk: string, eventTimeMs: number, seen: Connection): Promise<'written' | 'refused'> {
      return write(pk, updateOf({ event_time_ms: eventTimeMs }), asSeen(seen));
    },

    /** All that `owner` owns by the index, a page at a time. */
    async ownedBy(owner: string, from?: Item, limit?: number): Promise<Page<OwnedRow>> {
      const answer = await db.send(
        new QueryCommand({
          TableName: table,
          IndexName: 'by_owner',
          KeyConditionExpression: 'lease_owner = :owner',
          ExpressionAttributeValues: values({ ':owner': owner }),
          ExclusiveStartKey: from,
          Limit: limit,
        }),
      );
      return { rows: (answer.Items ?? []).flatMap(toOwnedRow), next: answer.LastEvaluatedKey };
    },

    /**
     * Keys in one part of the index `by_desired_state`, a page at a time.
     * @param expiredAtMs only those whose lease has run out by then (or was never taken)
     */
    async inBucket(
      bucket: Bucket,
      shard: number,
      query: { expiredAtMs?: number; limit?: number; from?: Item | undefined } = {},
    ) {
      const expired = query.expiredAtMs === undefined ? '' : ' AND lease_expires_at_ms <= :now';
      const answer = await db.send(
        new QueryCommand({
          TableName: table,
          IndexName: 'by_desired_state',
          KeyConditionExpression: `desired_shard = :shard${expired}`,
          ExpressionAttributeValues: values({ ':shard': `${bucket}#${shard}`, ':now': query.expiredAtMs }),
          ExclusiveStartKey: query.from,
          Limit: query.limit,
        }),
      );
      return { rows: (answer.Items ?? []).map(toKeyRow), next: answer.LastEvaluatedKey };
    },

    /** The items themselves, in no particular order; missing ones are left out. @param pks 100 at most */
    async getAll(pks: string[]): Promise<Connection[]> {
      const found: Connection[] = [];
      let keys: Item[] = pks.map((pk) => ({ pk: { S: pk } }));
      for (let tries = 0; keys.length > 0; tries++) {
        if (tries === 5) throw new Error(`DynamoDB left ${keys.length} of ${pks.length} items unread`);
        const answer = await db.send(new BatchGetItemCommand({ RequestItems: { [table]: { Keys: keys } } }));
        found.push(...(answer.Responses?.[table] ?? []).map(toConnection));
        keys = answer.UnprocessedKeys?.[table]?.Keys ?? [];
      }
      return found;
    },
  };

  async function write(pk: string, change: ReturnType<typeof updateOf>, condition: ReturnType<typeof asSeen>) {
    try {
      await db.send(
        new UpdateItemCommand({
          TableName: table,
          Key: { pk: { S: pk } },
          UpdateExpression: change.expression,
          ConditionExpression: condition.expression,
          ExpressionAttributeNames: { ...change.names, ...condition.names },
          ExpressionAttributeValues: values({ ...change.values, ...condition.values }),
        }),
      );
      return 'written' as const;
    } catch (fault) {
      if (isRefused(fault)) return 'refused' as const;
      throw fault;
    }
  }
}

/**
 * Epochs must never come back, not even when an item was deleted and is started anew: messages are stored under them.
 * So the count begins at the time in seconds, which no connection that is acquired less than once a second overtakes.
 */
function firstWrite(nowMs: number) {
  return { created_at_ms: nowMs, lease_epoch: Math.floor(nowMs / 1000), lease_expires_at_ms: 0 };
}

/**
 * Nobody has changed what is wanted, nor begun or ended a lease in between. An item that was written by hand may lack
 * generation and status: it was seen with their defaults.
 */
function asSeen(seen: Connection | undefined) {
  if (!seen) return { expression: 'attribute_not_exists(pk)', names: {}, values: {} };
  const sameGeneration = '(generation = :seen_generation OR attribute_not_exists(generation))';
  const sameStatus = '(#status = :seen_status OR attribute_not_exists(#status))';
  const sameEvent =
    seen.eventTimeMs === undefined ? 'attribute_not_exists(event_time_ms)' : 'event_time_ms = :seen_event';
  const sameOwner = seen.leaseOwner === undefined ? 'attribute_not_exists(lease_owner)' : 'lease_owner = :seen_owner';
  return {
    expression: `desired_state = :seen_state AND ${sameGeneration} AND ${sameEvent} AND ${sameOwner} AND ${sameStatus}`,
    names: { '#status': 'status' },
    values: {
      ':seen_state': seen.desiredState,
      ':seen_generation': seen.generation,
      ':seen_event': seen.eventTimeMs,
      ':seen_owner': seen.leaseOwner,
      ':seen_status': seen.status,
    },
  };
}

const ownedRow = z.object({
  pk: z.string(),
  desired_state: z.enum(['STARTED', 'STOPPED']),
  generation: z.number().default(1),
  lease_epoch: z.number(),
});

/** One that somebody has broken counts as missing, and so as a reason to look at the item. */
function toOwnedRow(item: Item): OwnedRow | [] {
  const { success, data: row } = ownedRow.safeParse(unmarshall(item));
  if (!success) return [];
  return { pk: row.pk, desiredState: row.desired_state, generation: row.generation, leaseEpoch: row.lease_epoch };
}

const keyRow = z.object({ pk: z.string(), lease_expires_at_ms: z.number() });

function toKeyRow(item: Item): { pk: string; leaseExpiresAtMs: number } {
  const row = keyRow.parse(unmarshall(item));
  return { pk: row.pk, leaseExpiresAtMs: row.lease_expires_at_ms };
}
