import { type Bucket, buckets, type Connection, idOf } from '../shared/connection.ts';
import { type FleetView, readFleet } from '../shared/fleet.ts';
import { readItems } from '../shared/items.ts';
import { isoTime } from '../shared/view.ts';
import { type ExitCode, exitCodes } from './exit.ts';
import type { Target } from './target.ts';

/** Past that it is a number to wonder at, and no longer one to count. Per part of the index: DynamoDB reads that much in one page. */
const mostCounted = 10_000;
const mostFailures = 10;
/** The index doesn't know when they failed, so the newest are chosen from these. */
const mostLookedAt = 200;

type Count = { count: number; more: boolean };

export type Failure = { connection_id: string; reason: string | null; attempts: number; failed_at: string | null };

export type Status = FleetView & {
  fleet: string;
  at: string;
  connections: Record<Bucket, Count>;
  recent_failures: Failure[];
  /** What needs somebody, in words. */
  problems: string[];
};

export async function readStatus(target: Target): Promise<Status> {
  const [fleet, counts, recent_failures] = await Promise.all([
    readFleet(target),
    Promise.all(buckets.map(async (bucket) => [bucket, await countIn(target, bucket)] as const)),
    recentFailures(target),
  ]);
  const now = target.clock.now();
  const problems = problemsOf(fleet, patienceMs(target), now);
  return {
    fleet: target.config.serviceName,
    at: isoTime(now) ?? '',
    ...fleet,
    connections: Object.fromEntries(counts) as Status['connections'],
    recent_failures,
    problems,
  };
}

/** How long a connection may be without an owner before that is more than a takeover: a lease has to run out, and a sweep to look. */
export const patienceMs = ({ config }: Pick<Target, 'config'>): number => config.lease.forMs + config.reconcile.everyMs;

/** @param patience ms. @returns what time alone won't help */
export function problemsOf(fleet: FleetView, patience: number, nowMs: number): string[] {
  const { orphans, waiting, broken, workers } = fleet;
  const silent = workers.filter(
    ({ state, last_heartbeat }) => state === 'silent' && nowMs - Date.parse(last_heartbeat ?? '') > patience,
  );
  const old = orphans.count > 0 && orphans.oldest_age_seconds * 1000 > patience;
  return [
    ...(waiting.hint === null ? [] : [`${orphans.count} connections have no owner; ${waiting.hint}`]),
    ...(waiting.hint === null && old
      ? [
          `${orphans.count} connections have no owner, the oldest for ${orphans.oldest_age_seconds} s: try \`reconcile\``,
        ]
      : []),
    ...broken.map(({ connection_id, message }) => `${connection_id} can't be read: ${message}`),
    ...silent.map(
      ({ worker_id }) => `${worker_id} is silent and nobody has declared it dead: does the reconciler run?`,
    ),
  ];
}

export function exitCodeOf({ problems, failed }: Pick<Status, 'problems' | 'failed'>): ExitCode {
  if (problems.length > 0) return exitCodes.trouble;
  return failed > 0 ? exitCodes.failed : exitCodes.fine;
}

async function countIn({ connections, shards }: Target, bucket: Bucket): Promise<Count> {
  const limit = Math.ceil(mostCounted / shards);
  const pages = await Promise.all(
    Array.from({ length: shards }, (_, shard) => connections.inBucket(bucket, shard, { limit })),
  );
  return {
    count: pages.reduce((sum, { rows }) => sum + rows.length, 0),
    more: pages.some(({ next }) => next !== undefined),
  };
}

async function recentFailures({ connections, shards }: Target): Promise<Failure[]> {
  const limit = Math.ceil(mostLookedAt / shards);
  const pages = await Promise.all(
    Array.from({ length: shards }, (_, shard) => connections.inBucket('FAILED', shard, { limit })),
  );
  const { found } = await readItems(
    connections,
    pages.flatMap(({ rows }) => rows.map(({ pk }) => pk)),
  );
  return found
    .filter(({ status }) => status === 'FAILED')
    .sort((a, b) => b.updatedAtMs - a.updatedAtMs)
    .slice(0, mostFailures)
    .map(failureOf);
}

function failureOf({ pk, statusReason, attempts, updatedAtMs }: Connection): Failure {
  return { connection_id: idOf(pk), reason: statusReason ?? null, attempts, failed_at: isoTime(updatedAtMs) };
}
