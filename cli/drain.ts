import { idOf, isWanted } from '../shared/connection.ts';
import { readItems } from '../shared/items.ts';
import { ownedBy } from '../shared/owned.ts';
import type { WorkerReport } from '../shared/tables/workers.ts';
import { CliError } from './exit.ts';
import type { Target } from './target.ts';

const lookEveryMs = 500;
/** Of an id. Fewer would name a worker by accident: they all begin alike. */
const leastTyped = 6;
/** A wake-up that nobody took at once is followed by the reconciler's. */
const placedWithinMs = 10_000;

export type Progress = { left: number; gone: boolean };

export type Drained = {
  worker_id: string;
  /** What was asked of whom. */
  done: string;
  held: number;
  /** What it still owns: nothing, when all was handed over in time. */
  left: number;
  /** Whether its process is known to have ended. */
  gone: boolean;
  moved_to: Record<string, number>;
  /** Wanted, and without an owner at the end. */
  waiting: string[];
  seconds: number;
};

/** @param given its id, or the beginning of it. @throws CliError when no living worker, or more than one, has it */
export async function workerCalled({ workers }: Pick<Target, 'workers'>, given: string): Promise<WorkerReport> {
  const alive = (await workers.all()).filter(({ expiredAtMs }) => expiredAtMs === undefined);
  const fitting = alive.filter(({ workerId }) => workerId.startsWith(given));
  if (given.length < leastTyped && fitting.length > 0)
    throw new CliError(`${given} is too little of an id`, 'type more of it');
  const exact = fitting.find(({ workerId }) => workerId === given) ?? (fitting.length === 1 ? fitting[0] : undefined);
  if (exact) return exact;
  const ids = (fitting.length > 0 ? fitting : alive).map(({ workerId }) => workerId).join(', ');
  if (fitting.length > 0) throw new CliError(`${given} is the beginning of several: ${ids}`, 'name one of them');
  throw new CliError(`no living worker is called ${given}`, ids === '' ? undefined : `there are: ${ids}`);
}

/**
 * Has a worker hand over and end, as a deployment does it, and looks on until all that it held is somewhere else and its
 * process has ended, or the time is up.
 */
export async function drain(
  target: Target,
  worker: WorkerReport,
  timeoutMs: number,
  onProgress: (progress: Progress) => void,
): Promise<Drained> {
  const { clock, workers } = target;
  const { workerId } = worker;
  const startedMs = clock.monotonic();
  const before = (await ownedBy(target, workerId)).filter(({ desiredState }) => desiredState === 'STARTED');
  const pks = before.map(({ pk }) => pk);
  const done = await target.stopWorker(worker);
  let goneMs: number | undefined;
  while (true) {
    const [owned, row] = await Promise.all([ownedBy(target, workerId), workers.get(workerId)]);
    const elapsedMs = clock.monotonic() - startedMs;
    if (row === undefined || row.expiredAtMs !== undefined) goneMs ??= elapsedMs;
    const left = owned.length;
    onProgress({ left, gone: goneMs !== undefined });
    const { moved_to, waiting } = await whereabouts(target, workerId, pks);
    const placed = waiting.length === 0 || (goneMs !== undefined && elapsedMs - goneMs > placedWithinMs);
    if ((left === 0 && goneMs !== undefined && placed) || elapsedMs > timeoutMs) {
      const gone = goneMs !== undefined;
      const seconds = Math.round(elapsedMs / 100) / 10;
      return { worker_id: workerId, done, held: pks.length, left, gone, moved_to, waiting, seconds };
    }
    await clock.sleep(lookEveryMs);
  }
}

/** Where the connections are now that it had. Those that were stopped meanwhile are nowhere, and rightly so. */
async function whereabouts({ connections, clock }: Target, from: string, pks: string[]) {
  const { found } = await readItems(connections, pks);
  const wanted = found.filter(isWanted);
  const now = clock.now();
  const moved_to: Record<string, number> = {};
  for (const { leaseOwner } of wanted) {
    if (leaseOwner !== undefined && leaseOwner !== from) moved_to[leaseOwner] = (moved_to[leaseOwner] ?? 0) + 1;
  }
  // One that waits for its next try isn't on its way to anybody yet.
  const waiting = wanted.filter(
    ({ leaseOwner, leaseExpiresAtMs }) => leaseOwner === undefined && leaseExpiresAtMs <= now,
  );
  return { moved_to, waiting: waiting.map(({ pk }) => idOf(pk)) };
}
