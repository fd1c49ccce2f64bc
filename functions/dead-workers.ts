import type { Clock } from '../shared/clock.ts';
import { describe } from '../shared/errors.ts';
import type { Log } from '../shared/log.ts';
import type { Metrics } from '../shared/metrics.ts';
import { ownedBy } from '../shared/owned.ts';
import type { ConnectionsTable, OwnedRow } from '../shared/tables/connections.ts';
import type { LeasesTable } from '../shared/tables/leases.ts';
import type { WorkerReport, WorkersTable } from '../shared/tables/workers.ts';
import type { WakeUp } from '../shared/wakeup.ts';
import type { MassGuard } from './mass-guard.ts';

export type DeadWorkersParts = {
  workers: Pick<WorkersTable, 'all' | 'expire'>;
  connections: Pick<ConnectionsTable, 'ownedBy'>;
  leases: Pick<LeasesTable, 'release'>;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  lease: { forMs: number; skewMs: number };
  guard: MassGuard;
};

/**
 * How long what a dead worker owned is looked at in every sweep. A claim that was on its way when its worker died may be
 * applied after the tombstone; past this, the sweep that also scans for orphans looks.
 */
const freshMs = 600_000;

/**
 * Puts a tombstone on each worker whose lease has run out by more than clocks may differ. One conditional write each: a
 * worker that has renewed meanwhile stays alive.
 * @returns all workers that are dead now
 */
export async function expireOverdue(
  parts: DeadWorkersParts,
  dryRun: boolean,
): Promise<{ dead: WorkerReport[]; expired: string[] }> {
  const { workers, clock, log, lease, guard } = parts;
  const rows = await workers.all();
  const nowMs = clock.now();
  const overdueBeforeMs = nowMs - lease.skewMs;
  const undead = rows.filter((row) => row.expiredAtMs === undefined);
  const overdue = undead.filter((row) => row.leaseExpiresAtMs < overdueBeforeMs);
  const dead = rows.filter((row) => row.expiredAtMs !== undefined);
  if (guard.holdsBack(overdue.length, undead.length, clock.monotonic())) {
    log.warn('workers.overdue', { overdue: overdue.length, of: undead.length, waits_ms: lease.forMs });
    return { dead, expired: [] };
  }
  const expired = dryRun
    ? overdue.map((row) => ({ ...row, expiredAtMs: nowMs }))
    : await bury(parts, overdue, overdueBeforeMs);
  return { dead: [...dead, ...expired], expired: expired.map(({ workerId }) => workerId) };
}

/** @param overdueBeforeMs undefined: they are known to be gone, whatever their leases say. @returns those that are dead now */
export async function bury(
  { workers, clock, log, metrics }: DeadWorkersParts,
  rows: WorkerReport[],
  overdueBeforeMs: number | undefined,
): Promise<WorkerReport[]> {
  const outcomes = await Promise.all(
    rows.map(async (row) => {
      const nowMs = clock.now();
      try {
        if ((await workers.expire(row.workerId, overdueBeforeMs, nowMs)) === 'refused') return [];
      } catch (fault) {
        // The others are buried all the same; the next sweep tries this one again.
        metrics.count('ReconcileErrors');
        log.warn('tombstone.unanswered', { worker_id: row.workerId, fault: describe(fault) });
        return [];
      }
      metrics.count('WorkersExpired');
      log.warn('worker.expired', { worker_id: row.workerId, held: row.held, overdue_ms: nowMs - row.leaseExpiresAtMs });
      return [{ ...row, expiredAtMs: nowMs }];
    }),
  );
  return outcomes.flat();
}

export const diedLately = ({ expiredAtMs }: WorkerReport, nowMs: number): boolean =>
  nowMs - (expiredAtMs ?? 0) < freshMs;

/**
 * What dead workers still own. Nothing is written for what is wanted: whoever takes it names the dead owner and the epoch.
 * What isn't wanted any more is given back here, since nobody else will.
 */
export async function leftBy(
  parts: DeadWorkersParts,
  dead: WorkerReport[],
  dryRun: boolean,
): Promise<{ wakeUps: WakeUp[]; sinceMs: number }> {
  const left = await Promise.all(dead.map(async (worker) => ({ worker, rows: await rowsOf(parts, worker) })));
  const unwanted = left.flatMap(({ worker, rows }) =>
    rows.filter((row) => row.desiredState === 'STOPPED').map((row) => giveBack(parts, worker.workerId, row)),
  );
  const wantedAgain = dryRun ? [] : (await Promise.all(unwanted.map((give) => give()))).flat();
  const wanted = left.map(({ worker, rows }) => ({
    worker,
    rows: rows.filter((row) => row.desiredState === 'STARTED'),
  }));
  return {
    wakeUps: [
      ...wanted.flatMap(({ worker, rows }) =>
        rows.map((row) => ({ pk: row.pk, after: { owner: worker.workerId, epoch: row.leaseEpoch } })),
      ),
      ...wantedAgain,
    ],
    sinceMs: Math.min(...wanted.filter(({ rows }) => rows.length > 0).map(({ worker }) => worker.expiredAtMs ?? 0)),
  };
}

/** What can't be read of one worker now must not keep what others left; the next sweep reads it again. */
async function rowsOf(parts: DeadWorkersParts, { workerId }: WorkerReport): Promise<OwnedRow[]> {
  try {
    return await ownedBy(parts, workerId);
  } catch (fault) {
    parts.metrics.count('ReconcileErrors');
    parts.log.warn('owned.unread', { worker_id: workerId, fault: describe(fault) });
    return [];
  }
}

/** What it returns gives it back, and says whom to wake up: a START may have come after the STOP that the index showed. */
function giveBack(
  { leases, clock, log, metrics }: DeadWorkersParts,
  owner: string,
  row: OwnedRow,
): () => Promise<WakeUp[]> {
  const claim = { pk: row.pk, owner, epoch: row.leaseEpoch };
  return async () => {
    try {
      const status = { status: 'CLOSED', attempts: 0 } as const;
      const after = await leases.release(claim, { lastSeq: undefined, status }, clock.now());
      return after !== 'refused' && after.desiredState === 'STARTED' ? [{ pk: row.pk }] : [];
    } catch (fault) {
      metrics.count('ReconcileErrors');
      log.warn('release.unanswered', { connection: row.pk, epoch: row.leaseEpoch, fault: describe(fault) });
      return [];
    }
  };
}
