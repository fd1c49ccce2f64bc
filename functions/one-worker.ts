import { idOf, isOrphan } from '../shared/connection.ts';
import { readItems } from '../shared/items.ts';
import type { OrphanTable } from '../shared/orphans.ts';
import { ownedBy } from '../shared/owned.ts';
import type { ConnectionsTable, OwnedRow } from '../shared/tables/connections.ts';
import type { WorkerReport, WorkersTable } from '../shared/tables/workers.ts';
import { isoTime } from '../shared/view.ts';
import type { WakeUp } from '../shared/wakeup.ts';
import { bury, type DeadWorkersParts } from './dead-workers.ts';
import { type WakeParts, wake } from './wake.ts';

export type OneWorkerParts = DeadWorkersParts &
  WakeParts & {
    connections: OrphanTable & Pick<ConnectionsTable, 'ownedBy'>;
    workers: Pick<WorkersTable, 'all' | 'expire' | 'get' | 'register'>;
    workerLease: boolean;
  };

type Judged = { worker: 'alive' | 'dead' | 'unknown'; why: string; row: WorkerReport | undefined };

const mostIds = 100;

/** What one worker left behind: buries it if its lease has run out, and wakes up all that nobody owns any more. */
export async function oneWorker(parts: OneWorkerParts, workerId: string, dryRun: boolean) {
  const { worker, why, row } = await judge(parts, workerId, dryRun);
  const rows = await ownedBy(parts, workerId);
  const { orphans, stillLeased, broken } =
    worker === 'dead' && row && parts.workerLease ? left(row, rows) : await expiredOnes(parts, workerId, rows);
  const woken = await wake(parts, { fresh: [], others: orphans }, dryRun);
  return {
    dryRun,
    workerId,
    worker,
    about: why,
    owned: rows.length,
    stillLeased,
    orphans: orphans.length,
    ...woken,
    connectionIds: orphans.slice(0, mostIds).map(({ pk }) => idOf(pk)),
    broken: broken.map(({ pk, message }) => ({ connectionId: idOf(pk), message })),
  };
}

async function judge(parts: OneWorkerParts, workerId: string, dryRun: boolean): Promise<Judged> {
  const { workers, clock, lease } = parts;
  const row = await workers.get(workerId);
  if (!row) return unknown(parts, workerId, dryRun);
  if (row.expiredAtMs !== undefined) return { worker: 'dead', why: `dead since ${isoTime(row.expiredAtMs)}`, row };
  const overdueBeforeMs = clock.now() - lease.skewMs;
  const until = `its lease runs until ${isoTime(row.leaseExpiresAtMs)}`;
  if (!parts.workerLease || row.leaseExpiresAtMs >= overdueBeforeMs) return { worker: 'alive', why: until, row };
  const [buried] = dryRun ? [row] : await bury(parts, [row], overdueBeforeMs);
  return buried
    ? { worker: 'dead', why: `its lease ran out: ${until}`, row: buried }
    : { worker: 'alive', why: 'it has just renewed', row };
}

/**
 * Somebody deleted its row. The worker may be alive all the same, so it is put back as if it had just renewed: if it lives,
 * it will renew; if not, it is overdue in one lease, like any other.
 */
async function unknown(
  { workers, connections, clock, lease, workerLease }: OneWorkerParts,
  workerId: string,
  dryRun: boolean,
): Promise<Judged> {
  const owns = (await connections.ownedBy(workerId, undefined, 1)).rows.length > 0;
  if (!owns || !workerLease) return { worker: 'unknown', why: 'no worker has this id', row: undefined };
  const leaseExpiresAtMs = clock.now() + lease.forMs;
  const row = {
    workerId,
    leaseExpiresAtMs,
    held: 0,
    capacity: 0,
    draining: true,
    revision: 'unknown',
    taskArn: undefined,
    startedAtMs: 0,
  };
  if (!dryRun) await workers.register(row);
  const why = `its row is missing${dryRun ? '' : ', and was put back'}: unless it lives, it is dead after ${isoTime(leaseExpiresAtMs)}`;
  return { worker: 'unknown', why, row: undefined };
}

type Left = { orphans: WakeUp[]; stillLeased: number; broken: { pk: string; message: string }[] };

function left(worker: WorkerReport, rows: OwnedRow[]): Left {
  const wanted = rows.filter((row) => row.desiredState === 'STARTED');
  const orphans = wanted.map((row) => ({ pk: row.pk, after: { owner: worker.workerId, epoch: row.leaseEpoch } }));
  return { orphans, stillLeased: 0, broken: [] };
}

/** By the items themselves, as far as their own leases have run out. */
async function expiredOnes({ connections, clock }: OneWorkerParts, workerId: string, rows: OwnedRow[]): Promise<Left> {
  const { found, broken } = await readItems(
    connections,
    rows.map(({ pk }) => pk),
  );
  const nowMs = clock.now();
  const owned = found.filter((item) => item.leaseOwner === workerId);
  const orphans: WakeUp[] = owned.filter((item) => isOrphan(item, nowMs)).map(({ pk }) => ({ pk }));
  const stillLeased = owned.filter((item) => item.leaseExpiresAtMs > nowMs).length;
  return { orphans, stillLeased, broken };
}
