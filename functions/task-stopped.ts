import { z } from 'zod';
import type { WorkersTable } from '../shared/tables/workers.ts';
import { bury, type DeadWorkersParts, leftBy } from './dead-workers.ts';
import { apart, type WakeParts, type Woken, wake } from './wake.ts';

/** "ECS Task State Change", as EventBridge sends it: at least once, late, in any order. */
export const taskStateChange = z.object({
  source: z.literal('aws.ecs'),
  'detail-type': z.literal('ECS Task State Change'),
  detail: z.object({ taskArn: z.string(), clusterArn: z.string().optional(), lastStatus: z.string() }),
});

export type TaskStateChange = z.infer<typeof taskStateChange>;

export type TaskStoppedParts = DeadWorkersParts &
  WakeParts & {
    workers: Pick<WorkersTable, 'all' | 'expire'>;
    /** What ECS itself says of the task now; undefined where there is no ECS to ask. */
    statusOf: ((taskArn: string) => Promise<string>) | undefined;
  };

/**
 * A task has ended: its worker is dead at once, and not when its lease runs out. STOPPED is for good and an ARN isn't used
 * twice, so it doesn't matter how often or how late this is heard; but ECS is asked, since all that a running worker owns
 * would be taken away from it on the word of one event.
 */
export async function taskStopped(parts: TaskStoppedParts, { detail }: TaskStateChange) {
  const { workers, statusOf, log } = parts;
  const { taskArn, lastStatus } = detail;
  if (lastStatus !== 'STOPPED') return { taskArn, ignored: `it is ${lastStatus}` };
  const now = (await statusOf?.(taskArn)) ?? 'STOPPED';
  if (now !== 'STOPPED') {
    log.warn('task.running', { task_arn: taskArn, status: now });
    return { taskArn, ignored: `ECS says that it is ${now}` };
  }
  // Every id that a process of this task has had: it takes a fresh one after each fence.
  const ids = (await workers.all()).filter((row) => row.taskArn === taskArn);
  const expired = await bury(
    parts,
    ids.filter((row) => row.expiredAtMs === undefined),
    undefined,
  );
  const { wakeUps } = await leftBy(parts, ids, false);
  const expiredIds = expired.map(({ workerId }) => workerId);
  const woken: Woken = await wake(parts, apart(wakeUps, expiredIds), false);
  await parts.metrics.publish();
  log.info('task.stopped', { task_arn: taskArn, expired: expired.length, left: wakeUps.length, ...woken });
  return { taskArn, expired: expiredIds, left: wakeUps.length, ...woken };
}
