import { type DynamoDBClient, GetItemCommand, ScanCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import { z } from 'zod';
import { isRefused } from '../errors.ts';
import { type Item, updateOf, values } from './item.ts';

export type WorkerReport = {
  workerId: string;
  leaseExpiresAtMs: number;
  held: number;
  capacity: number;
  draining: boolean;
  revision: string;
  taskArn: string | undefined;
  startedAtMs: number;
  /** Unix ms. The tombstone: from then on the id is dead. */
  expiredAtMs?: number | undefined;
};

/**
 * How long a row outlives its lease. Longer than any connection lease: as long as something may still be owned under a
 * dead id, its tombstone must be there to say so.
 */
const rememberedMs = 86_400_000;

export type WorkersTable = ReturnType<typeof workersTable>;

const alive = 'attribute_not_exists(expired_at_ms)';
const forward = 'lease_expires_at_ms < :lease_expires_at_ms';

/**
 * The lease of each worker, and what it says of itself with each renewal. A row with `expired_at_ms` is a tombstone: that
 * id is dead for good, whatever may still be on its way from it.
 * Outcomes are returned; no answer is thrown, and the write may have been applied.
 */
export function workersTable(db: DynamoDBClient, table: string) {
  async function write(
    workerId: string,
    changes: Record<string, unknown>,
    condition: string,
    more: Record<string, unknown> = {},
  ) {
    const change = updateOf(changes);
    try {
      await db.send(
        new UpdateItemCommand({
          TableName: table,
          Key: { worker_id: { S: workerId } },
          UpdateExpression: change.expression,
          ConditionExpression: condition,
          ExpressionAttributeNames: change.names,
          ExpressionAttributeValues: values({ ...change.values, ...more }),
        }),
      );
      return 'written' as const;
    } catch (fault) {
      if (isRefused(fault)) return 'refused' as const;
      throw fault;
    }
  }

  return {
    /** Begins the lease of a fresh id; again, when an earlier try wasn't answered. @returns 'refused': the id is dead */
    register: (worker: WorkerReport) =>
      write(worker.workerId, rowOf(worker), `attribute_not_exists(worker_id) OR (${alive} AND ${forward})`),

    /** Moves the expiry forward, never back. @returns 'refused': dead, or deleted by hand */
    renew: (worker: WorkerReport) =>
      write(worker.workerId, rowOf(worker), `attribute_exists(worker_id) AND ${alive} AND ${forward}`),

    /**
     * Puts a tombstone on a worker, so that it can't renew and others may take what it owns. Idempotent.
     * @param overdueBeforeMs only if its lease ran out before this, Unix ms; undefined: it is known to be gone
     * @returns 'refused': it has renewed, or is dead already
     */
    expire(workerId: string, overdueBeforeMs: number | undefined, nowMs: number): Promise<'written' | 'refused'> {
      const tombstone = { expired_at_ms: nowMs, held: 0, expires_at: Math.ceil((nowMs + rememberedMs) / 1000) };
      if (overdueBeforeMs === undefined) return write(workerId, tombstone, alive);
      return write(workerId, tombstone, `${alive} AND lease_expires_at_ms < :overdue`, { ':overdue': overdueBeforeMs });
    },

    /** Reads the row itself. */
    async get(workerId: string): Promise<WorkerReport | undefined> {
      const answer = await db.send(
        new GetItemCommand({ TableName: table, Key: { worker_id: { S: workerId } }, ConsistentRead: true }),
      );
      return answer.Item && toWorker(answer.Item);
    },

    /** All workers that are remembered, living or dead: a few hundred at most. */
    async all(): Promise<WorkerReport[]> {
      const workers: WorkerReport[] = [];
      let from: Item | undefined;
      do {
        const answer = await db.send(
          new ScanCommand({ TableName: table, ExclusiveStartKey: from, ConsistentRead: true }),
        );
        workers.push(...(answer.Items ?? []).map(toWorker));
        from = answer.LastEvaluatedKey;
      } while (from);
      return workers;
    },
  };
}

function rowOf(worker: WorkerReport): Record<string, unknown> {
  return {
    lease_expires_at_ms: worker.leaseExpiresAtMs,
    held: worker.held,
    capacity: worker.capacity,
    draining: worker.draining,
    revision: worker.revision,
    ...(worker.taskArn === undefined ? {} : { task_arn: worker.taskArn }),
    started_at_ms: worker.startedAtMs,
    // Seconds: DynamoDB's TTL counts in them.
    expires_at: Math.ceil((worker.leaseExpiresAtMs + rememberedMs) / 1000),
  };
}

/**
 * One row that somebody has damaged must not keep the reconciler from all others, so what can't be read counts as nothing:
 * a lease that is no number is over, and a tombstone that is none isn't one.
 */
const workerItem = z.object({
  worker_id: z.string(),
  lease_expires_at_ms: z.number().catch(0),
  held: z.number().catch(0),
  capacity: z.number().catch(0),
  draining: z.boolean().catch(false),
  revision: z.string().catch('unknown'),
  task_arn: z.string().optional().catch(undefined),
  started_at_ms: z.number().catch(0),
  expired_at_ms: z.number().optional().catch(undefined),
});

function toWorker(item: Item): WorkerReport {
  const row = workerItem.parse(unmarshall(item));
  return {
    workerId: row.worker_id,
    leaseExpiresAtMs: row.lease_expires_at_ms,
    held: row.held,
    capacity: row.capacity,
    draining: row.draining,
    revision: row.revision,
    taskArn: row.task_arn,
    startedAtMs: row.started_at_ms,
    expiredAtMs: row.expired_at_ms,
  };
}
