import { z } from 'zod';
import { bucketOf, type Connection, isWanted, pkOf } from '../shared/connection.ts';
import { InputError } from '../shared/errors.ts';
import { isoTime } from '../shared/view.ts';
import { inWords, problemsOf } from './check.ts';
import { type OneWorkerParts, oneWorker } from './one-worker.ts';
import { Refusal } from './refusal.ts';
import { type SweepParts, sweep } from './sweep.ts';

export type ByHandParts = SweepParts & OneWorkerParts;

const payload = z.strictObject({
  dryRun: z.boolean().default(false),
  connectionId: z.string().min(1).max(256).optional(),
  workerId: z.string().min(1).max(256).optional(),
});

/**
 * What a person asks of the reconciler: one sweep, or one connection, or what one worker left behind. The answer is for
 * that person to read.
 * @param sent `{dryRun?, connectionId?, workerId?}`
 * @throws InputError, so that whoever invoked it sees a failed invocation
 */
export async function reconcileByHand(parts: ByHandParts, sent: unknown) {
  const parsed = payload.safeParse(sent ?? {}, { error: inWords });
  if (!parsed.success) throw new InputError(new Refusal(400, 'bad_payload', problemsOf(parsed.error)).message);
  const { dryRun, connectionId, workerId } = parsed.data;
  if (connectionId !== undefined && workerId !== undefined) {
    throw new InputError('connectionId and workerId go only one at a time');
  }
  try {
    if (connectionId !== undefined) return await oneConnection(parts, connectionId, dryRun);
    if (workerId !== undefined) return await oneWorker(parts, workerId, dryRun);
    return await sweep(parts, { dryRun, scan: true });
  } finally {
    if (!dryRun) await parts.metrics.publish();
  }
}

/** Wakes it up whatever the queue holds: somebody has asked for just this one. */
async function oneConnection(parts: ByHandParts, connectionId: string, dryRun: boolean) {
  const { connections, queue, clock, metrics } = parts;
  const connection = await connections.get(pkOf(connectionId));
  const { state, why } = (await leftByTheDead(parts, connection)) ?? stateOf(connection, clock.now());
  const woken = state === 'orphan' && !dryRun;
  if (woken) {
    await queue.send({ pk: pkOf(connectionId) });
    metrics.count('WakeUpsSent');
  }
  return { dryRun, connectionId, state, why, woken };
}

/** Whoever takes the wake-up finds the tombstone by itself. */
async function leftByTheDead({ workers, workerLease }: ByHandParts, connection: Connection | undefined) {
  const owner = connection?.leaseOwner;
  if (!workerLease || !connection || owner === undefined || !isWanted(connection)) return undefined;
  const row = await workers.get(owner);
  if (row?.expiredAtMs === undefined) return undefined;
  return { state: 'orphan', why: `${owner} owns it, and is dead since ${isoTime(row.expiredAtMs)}` };
}

function stateOf(connection: Connection | undefined, nowMs: number): { state: string; why: string } {
  if (!connection) return { state: 'unknown', why: 'no such connection was ever started, or it is gone' };
  const { leaseOwner, leaseExpiresAtMs, statusReason } = connection;
  const until = isoTime(leaseExpiresAtMs) ?? '';
  const runs = leaseExpiresAtMs > nowMs;
  if (leaseOwner !== undefined && runs) return { state: 'owned', why: `${leaseOwner} owns it until ${until}` };
  const bucket = bucketOf(connection);
  if (bucket === 'STOPPED') return { state: 'stopped', why: 'nobody wants it' };
  if (bucket === 'FAILED') return { state: 'failed', why: statusReason ?? 'its source refused it for good' };
  if (runs)
    return { state: 'waiting', why: `its next try is due at ${until}: ${statusReason ?? 'the last ones failed'}` };
  if (leaseOwner !== undefined) return { state: 'orphan', why: `the lease of ${leaseOwner} ran out at ${until}` };
  return { state: 'orphan', why: 'no worker has taken it' };
}
