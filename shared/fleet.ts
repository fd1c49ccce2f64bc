import type { Clock } from './clock.ts';
import { idOf } from './connection.ts';
import { findOrphans, type Orphans } from './orphans.ts';
import { ownedBy } from './owned.ts';
import type { Queue } from './queue.ts';
import type { ConnectionsTable } from './tables/connections.ts';
import type { WorkerReport, WorkersTable } from './tables/workers.ts';
import { isoTime } from './view.ts';

export type FleetParts = {
  connections: Pick<ConnectionsTable, 'get' | 'getAll' | 'inBucket' | 'ownedBy'>;
  workers: Pick<WorkersTable, 'all'>;
  queue: Pick<Queue, 'depth'>;
  shards: number;
  clock: Clock;
  /** How long a heartbeat is good for. */
  leaseMs: number;
};

const mostIds = 20;
const mostFailedPerShard = 1000;
/** DynamoDB's TTL removes what is over within days; here it is over at once. */
const rememberedMs = 3_600_000;

export type FleetView = Awaited<ReturnType<typeof readFleet>>;

/**
 * Who holds how much, and what nobody holds, for people to look at: GET /fleet and `npm run fleet`. What is OPEN, PENDING and
 * so on isn't counted: it would mean reading every connection at each look.
 */
export async function readFleet(parts: FleetParts) {
  const now = parts.clock.now();
  const [reports, free, failed, depth] = await Promise.all([
    parts.workers.all(),
    findOrphans(parts.connections, parts.shards, now),
    countFailed(),
    // With SQS away, all that DynamoDB can say is worth the more.
    parts.queue.depth().then(
      (waiting) => waiting,
      () => null,
    ),
  ]);
  const workers = reports.filter((worker) => now - worker.leaseExpiresAtMs < rememberedMs);
  const orphans = withLeft(free, await leftByTheDead(workers), now);
  const alive = workers.filter((worker) => stateOf(worker, now) === 'alive');
  return {
    workers: workers.map((worker) => workerView(worker, now)).sort(byStateThenId),
    totals: { workers: alive.length, ...load(alive) },
    orphans: {
      count: orphans.pks.length,
      oldest_age_seconds: Math.round(orphans.oldestAgeMs / 1000),
      connection_ids: orphans.pks.slice(0, mostIds).map(idOf),
    },
    failed,
    broken: orphans.broken.map(({ pk, message }) => ({ connection_id: idOf(pk), message })),
    queue: { wake_ups: depth },
    waiting: waiting(orphans.pks.length, alive),
  };

  /** What dead workers still own: nobody holds it, although its lease runs on. */
  async function leftByTheDead(workers: WorkerReport[]): Promise<{ pk: string; sinceMs: number }[]> {
    const dead = workers.flatMap(({ workerId, expiredAtMs }) =>
      expiredAtMs === undefined ? [] : [{ workerId, sinceMs: expiredAtMs }],
    );
    const left = await Promise.all(
      dead.map(async ({ workerId, sinceMs }) => (await ownedBy(parts, workerId)).map((row) => ({ ...row, sinceMs }))),
    );
    return left.flat().filter((row) => row.desiredState === 'STARTED');
  }

  /** Those that were given up are few; the count stops where it would become work. */
  async function countFailed(): Promise<number> {
    const pages = await Promise.all(
      Array.from({ length: parts.shards }, (_, shard) =>
        parts.connections.inBucket('FAILED', shard, { limit: mostFailedPerShard }),
      ),
    );
    return pages.reduce((sum, { rows }) => sum + rows.length, 0);
  }

  function workerView(worker: WorkerReport, now: number) {
    return {
      worker_id: worker.workerId,
      state: stateOf(worker, now),
      ...load([worker]),
      draining: worker.draining,
      revision: worker.revision,
      task_arn: worker.taskArn ?? null,
      started_at: isoTime(worker.startedAtMs),
      last_heartbeat: isoTime(worker.leaseExpiresAtMs - parts.leaseMs),
      gone_at: isoTime(worker.expiredAtMs),
    };
  }
}

function withLeft(free: Orphans, left: { pk: string; sinceMs: number }[], now: number): Orphans {
  const oldestLeftMs = left.reduce((oldest, { sinceMs }) => Math.max(oldest, now - sinceMs), 0);
  return {
    pks: [...new Set([...free.pks, ...left.map(({ pk }) => pk)])],
    oldestAgeMs: Math.max(free.oldestAgeMs, oldestLeftMs),
    broken: free.broken,
  };
}

/** alive: its last heartbeat is fresh. silent: it is overdue, and may be dead. gone: it said so itself, or was told. */
type WorkerState = 'alive' | 'silent' | 'gone';

function stateOf(worker: WorkerReport, now: number): WorkerState {
  if (worker.expiredAtMs !== undefined) return 'gone';
  return worker.leaseExpiresAtMs > now ? 'alive' : 'silent';
}

function load(workers: WorkerReport[]) {
  const held = workers.reduce((sum, worker) => sum + worker.held, 0);
  const capacity = workers.reduce((sum, worker) => sum + worker.capacity, 0);
  return { held, capacity, percent: capacity === 0 ? 0 : Math.round((held / capacity) * 100) };
}

/** Orphans that no worker has room for: time alone won't help them. Others are on their way to a worker. */
function waiting(orphans: number, alive: WorkerReport[]) {
  const takers = alive.filter(({ draining }) => !draining);
  const { held, capacity } = load(takers);
  if (orphans === 0 || takers.some((worker) => worker.held < worker.capacity)) return { count: 0, hint: null };
  const hint =
    takers.length === 0
      ? 'no worker is there to take them: look at the service in ECS, and at the log of its tasks'
      : `all workers are full (${held} of ${capacity}): start more of them, or raise MAX_CONNECTIONS`;
  return { count: orphans, hint };
}

function byStateThenId(
  a: { state: WorkerState; worker_id: string },
  b: { state: WorkerState; worker_id: string },
): number {
  const order: WorkerState[] = ['alive', 'silent', 'gone'];
  return order.indexOf(a.state) - order.indexOf(b.state) || (a.worker_id < b.worker_id ? -1 : 1);
}
