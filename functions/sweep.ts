import type { Clock } from '../shared/clock.ts';
import { idOf } from '../shared/connection.ts';
import { describe } from '../shared/errors.ts';
import { findOrphans, type OrphanTable } from './orphans.ts';
import { type WakeParts, type Woken, wake } from './wake.ts';

export type SweepParts = WakeParts & { connections: OrphanTable; shards: number; clock: Clock };

export type Swept = Woken & {
  dryRun: boolean;
  orphans: number;
  oldestAgeSeconds: number;
  /** The first of them, for a person. */
  connectionIds: string[];
  broken: { connectionId: string; message: string }[];
};

const mostIds = 20;

/**
 * One look at everything: finds what is wanted and has no owner, and gives a hint about it to the queue. It writes
 * nothing, so two at once, or one that is killed halfway, cost a few wake-ups too many, and those are harmless.
 *
 * Its first step, expiring workers whose lease ran out and waking up what they still own, belongs here as soon as
 * workers have a lease of their own.
 */
export async function sweep(parts: SweepParts, dryRun: boolean): Promise<Swept> {
  const { connections, shards, clock, metrics, log } = parts;
  const orphans = await findOrphans(connections, shards, clock.now());
  const oldestAgeSeconds = Math.round(orphans.oldestAgeMs / 1000);
  metrics.gauge('Orphans', orphans.pks.length);
  metrics.gauge('OldestOrphanAgeSeconds', oldestAgeSeconds);
  for (const { pk, message } of orphans.broken) {
    metrics.count('ReconcileErrors');
    log.error('item.broken', { connection_id: idOf(pk), message });
  }
  const woken = await wake(parts, orphans.pks, dryRun);
  if (orphans.pks.length > 0) log.info('sweep.found', { orphans: orphans.pks.length, oldestAgeSeconds, ...woken });
  return {
    dryRun,
    orphans: orphans.pks.length,
    oldestAgeSeconds,
    ...woken,
    connectionIds: orphans.pks.slice(0, mostIds).map(idOf),
    broken: orphans.broken.map(({ pk, message }) => ({ connectionId: idOf(pk), message })),
  };
}

/** Never throws: a sweep that fails is logged and counted, and the next one tries again. @returns undefined when it failed */
export async function countedSweep(parts: SweepParts): Promise<Swept | undefined> {
  const { metrics, log } = parts;
  // Also when there is nothing to count: an alarm can't tell "none" from "not running" otherwise.
  metrics.count('Sweeps');
  metrics.count('WakeUpsSent', 0);
  metrics.count('ReconcileErrors', 0);
  try {
    return await sweep(parts, false);
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
  while (dueMs < timing.everyMs && timing.remainingMs() - Math.max(0, dueMs - elapsed()) >= timing.marginMs) {
    await clock.sleep(Math.max(0, dueMs - elapsed()));
    const swept = await countedSweep(parts);
    total.sweeps += 1;
    if (!swept) total.failed += 1;
    dueMs = Math.max(dueMs + timing.sweepMs, elapsed());
  }
  return total;

  function elapsed(): number {
    return clock.monotonic() - startedAtMs;
  }
}
