import { type DynamoDBClient, ScanCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import { z } from 'zod';
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
  /** Unix ms at which it said that it is gone. */
  expiredAtMs?: number | undefined;
};

/** A worker that is gone stays visible this long, for whoever asks what happened. */
const rememberedMs = 3_600_000;

export type WorkersTable = ReturnType<typeof workersTable>;

/** What each worker says of itself at every heartbeat. Nothing is decided by it yet. */
export function workersTable(db: DynamoDBClient, table: string) {
  return {
    async report(worker: WorkerReport): Promise<void> {
      const change = updateOf({
        lease_expires_at_ms: worker.leaseExpiresAtMs,
        held: worker.held,
        capacity: worker.capacity,
        draining: worker.draining,
        revision: worker.revision,
        ...(worker.taskArn === undefined ? {} : { task_arn: worker.taskArn }),
        started_at_ms: worker.startedAtMs,
        ...(worker.expiredAtMs === undefined ? {} : { expired_at_ms: worker.expiredAtMs }),
        // Seconds: DynamoDB's TTL counts in them.
        expires_at: Math.ceil((worker.leaseExpiresAtMs + rememberedMs) / 1000),
      });
      await db.send(
        new UpdateItemCommand({
          TableName: table,
          Key: { worker_id: { S: worker.workerId } },
          UpdateExpression: change.expression,
          ExpressionAttributeNames: change.names,
          ExpressionAttributeValues: values(change.values),
        }),
      );
    },

    /** All workers that are remembered, living or gone: a few hundred at most. */
    async all(): Promise<WorkerReport[]> {
      const workers: WorkerReport[] = [];
      let from: Item | undefined;
      do {
        const answer = await db.send(new ScanCommand({ TableName: table, ExclusiveStartKey: from }));
        workers.push(...(answer.Items ?? []).map(toWorker));
        from = answer.LastEvaluatedKey;
      } while (from);
      return workers;
    },
  };
}

const workerItem = z.object({
  worker_id: z.string(),
  lease_expires_at_ms: z.number(),
  held: z.number(),
  capacity: z.number(),
  draining: z.boolean(),
  revision: z.string(),
  task_arn: z.string().optional(),
  started_at_ms: z.number(),
  expired_at_ms: z.number().optional(),
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
