import type { Clock } from '../shared/clock.ts';
import { idOf } from '../shared/connection.ts';
import { describe } from '../shared/errors.ts';
import { findOrphans, type Orphans, type OrphanTable } from '../shared/orphans.ts';
import { type DeadWorkersParts, diedLately, expireOverdue, leftBy } from './dead-workers.ts';
import { apart, type WakeParts, type Woken, wake } from './wake.ts';

export type SweepParts = WakeParts &
  DeadWorkersParts & { connections: OrphanTable; shards: number; clock: Clock; workerLease: boolean; seen: Seen };

/** What the last scan for orphans found, between scans. */
export type Seen = { orphans: number; oldestAgeMs: number };

export type Swept = Woken & {
  dryRun: boolean;
  /** Workers that this sweep found dead. */
  expired: string[];
  orphans: number;
  oldestAgeSeconds: number;
  /** The first of them, for a person. */
  connectionIds: string[];
  broken: { connectionId: string; message: string }[];
};

const mostIds = 20;
const nothing: Orphans = { pks: [], oldestAgeMs: 0, broken: [] };

/**
 * One look: buries the workers whose lease ran out, and gives a hint to the queue about everything that dead workers left;
 * with `scan`, also about everything that is wanted and free. All that it writes is conditional and can be written twice, so
 * two at once, or one that is killed halfway, cost a few wake-ups too many, and those are harmless.
 * @param scan read the whole index of orphans. Without the worker lease there is no other way to find any.
 */
export async function sweep(parts: SweepParts, { dryRun, scan }: { dryRun: boolean; scan: boolean }): Promise<Swept> {
  const { clock, metrics, log } = parts;
  const gone = parts.workerLease ? await expireOverdue(parts, dryRun) : { dead: [], expired: [] };
  const toFollow = scan ? gone.dead : gone.dead.filter((worker) => diedLately(worker, clock.now()));
  const left = await leftBy(parts, toFollow, dryRun);
  const found = scan || !parts.workerLease ? await findOrphans(parts.connections, parts.shards, clock.now()) : nothing;
  const seen = scan ? { orphans: found.pks.length, oldestAgeMs: found.oldestAgeMs } : parts.seen;
  if (!dryRun) Object.assign(parts.seen, seen);

  const orphans = left.wakeUps.length + seen.orphans;
  const oldestLeftMs = left.wakeUps.length === 0 ? 0 : clock.now() - left.sinceMs;
  const oldestAgeSeconds = Math.round(Math.max(oldestLeftMs, seen.oldestAgeMs) / 1000);
  if (!dryRun) metrics.gauge('Orphans', orphans);
  if (!dryRun) metrics.gauge('OldestOrphanAgeSeconds', oldestAgeSeconds);
  for (const { pk, message } of found.broken) {
    metrics.count('ReconcileErrors');
    log.error('item.broken', { connection: pk, epoch: null, message });
  }
  const wakeUps = [...left.wakeUps, ...found.pks.map((pk) => ({ pk }))];
  const woken = await wake(parts, apart(wakeUps, gone.expired), dryRun);
  if (wakeUps.length > 0) log.info('sweep.found', { orphans, oldestAgeSeconds, left: left.wakeUps.length, ...woken });
  return {
    dryRun,
    expired: gone.expired,
    orphans,
    oldestAgeSeconds,
    ...woken,
    connectionIds: wakeUps.slice(0, mostIds).map(({ pk }) => idOf(pk)),
    broken: found.broken.map(({ pk, message }) => ({ connectionId: idOf(pk), message })),
  };
}

/** Never throws: a sweep that fails is logged and counted, and the next one tries again. @returns undefined when it failed */
export async function countedSweep(parts: SweepParts, scan: boolean): Promise<Swept | undefined> {
  const { metrics, log } = parts;
  // Also when there is nothing to count: an alarm can't tell "none" from "not running" otherwise.
  metrics.count('Sweeps');
  metrics.count('WakeUpsSent', 0);
  metrics.count('ReconcileErrors', 0);
  try {
    return await sweep(parts, { dryRun: false, scan });
  } catch (fault) {
    metrics.count('ReconcileErrors');
    log.error('sweep.failed', { fault: describe(fault) });
    return undefined;
  } finally {
    await metrics.publish();
  }
}

export type Timing = { everyMs: number; sweepMs: number; marginMs: number; remainingMs: () => number };

/**
 * Sweeps at once and then every `sweepMs`, until the next call from the schedule is due. A sweep that takes longer than
 * that pushes the next one back. None begins when less than `marginMs` of Lambda's time are left.
 */
export async function sweepThrough(parts: SweepParts, timing: Timing): Promise<{ sweeps: number; failed: number }> {
  const { clock } = parts;
  const startedAtMs = clock.monotonic();
  const total = { sweeps: 0, failed: 0 };
  let dueMs = 0;
  let scanned = false;
  while (dueMs < timing.everyMs && timing.remainingMs() - Math.max(0, dueMs - elapsed()) >= timing.marginMs) {
    await clock.sleep(Math.max(0, dueMs - elapsed()));
    // With the worker lease, what needs haste is found by its owner; the scan is the net below that, once a minute.
    const swept = await countedSweep(parts, !scanned || !parts.workerLease);
    scanned ||= swept !== undefined;
    total.sweeps += 1;
    if (!swept) total.failed += 1;
    dueMs = Math.max(dueMs + timing.sweepMs, elapsed());
  }
  return total;

  function elapsed(): number {
    return clock.monotonic() - startedAtMs;
  }
}
