/** A table of workers in memory, with the conditions of the real one. A test decides what becomes of each write. */
import type { WorkerReport, WorkersTable } from '../../shared/tables/workers.ts';
import { settled } from './virtual-clock.ts';

/**
 * - answered     applied and answered at once
 * - lost         applied, and the answer gets lost
 * - unreachable  neither
 * - held         the test says when, and which of the three
 */
export type Fate = 'answered' | 'lost' | 'unreachable' | 'held';

type Write = { operation: 'register' | 'renew' | 'expire'; workerId: string; leaseExpiresAtMs?: number };
type Outcome = 'written' | 'refused';

export function fakeWorkers() {
  const rows = new Map<string, WorkerReport>();
  const sent: Write[] = [];
  const held: { write: Write; end(fate: Exclude<Fate, 'held'>): Promise<void> }[] = [];
  const fates = { now: 'answered' as Fate };

  function write(what: Write, apply: () => Outcome): Promise<Outcome> {
    sent.push(what);
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    const end = (fate: Exclude<Fate, 'held'>): Promise<void> => {
      const outcome = fate === 'unreachable' ? undefined : apply();
      if (fate === 'answered' && outcome) resolve(outcome);
      else reject(new Error('timed out'));
      return settled();
    };
    if (fates.now === 'held') held.push({ write: what, end });
    else void end(fates.now);
    return promise;
  }

  const put = (worker: WorkerReport): Outcome => {
    rows.set(worker.workerId, worker);
    return 'written';
  };
  const forward = (worker: WorkerReport, row: WorkerReport): boolean =>
    row.expiredAtMs === undefined && row.leaseExpiresAtMs < worker.leaseExpiresAtMs;

  const workers: WorkersTable = {
    register: (worker) =>
      write({ operation: 'register', ...worker }, () => {
        const row = rows.get(worker.workerId);
        return row === undefined || forward(worker, row) ? put(worker) : 'refused';
      }),
    renew: (worker) =>
      write({ operation: 'renew', ...worker }, () => {
        const row = rows.get(worker.workerId);
        return row && forward(worker, row) ? put(worker) : 'refused';
      }),
    expire: (workerId, overdueBeforeMs, nowMs) =>
      write({ operation: 'expire', workerId }, () => {
        const row = rows.get(workerId);
        if (row?.expiredAtMs !== undefined) return 'refused';
        if (overdueBeforeMs !== undefined && !(row && row.leaseExpiresAtMs < overdueBeforeMs)) return 'refused';
        return put({ ...(row ?? nobody(workerId)), expiredAtMs: nowMs, held: 0 });
      }),
    get: async (workerId) => rows.get(workerId),
    all: async () => [...rows.values()],
  };
  const log = () => sent.map(({ operation, workerId }) => `${operation} ${workerId}`);
  return { workers, rows, sent, log, held, fates };
}

const nobody = (workerId: string): WorkerReport => ({
  workerId,
  leaseExpiresAtMs: 0,
  held: 0,
  capacity: 0,
  draining: false,
  revision: 'unknown',
  taskArn: undefined,
  startedAtMs: 0,
});
