import { z } from 'zod';
import { bucketOf, type Connection, idOf, isOrphan, pkOf } from '../shared/connection.ts';
import { InputError } from '../shared/errors.ts';
import type { ConnectionsTable } from '../shared/tables/connections.ts';
import type { Item } from '../shared/tables/item.ts';
import { inWords, problemsOf } from './check.ts';
import { readItems } from './items.ts';
import { Refusal } from './refusal.ts';
import { type SweepParts, sweep } from './sweep.ts';
import { isoTime } from './view.ts';
import { wake } from './wake.ts';

export type ByHandParts = SweepParts & { connections: Pick<ConnectionsTable, 'ownedBy'> };

const payload = z.strictObject({
  dryRun: z.boolean().default(false),
  connectionId: z.string().min(1).max(256).optional(),
  workerId: z.string().min(1).max(256).optional(),
});

const mostIds = 100;

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
    return await sweep(parts, dryRun);
  } finally {
    if (!dryRun) await parts.metrics.publish();
  }
}

/** Wakes it up whatever the queue holds: somebody has asked for just this one. */
async function oneConnection(
  { connections, queue, clock, metrics }: ByHandParts,
  connectionId: string,
  dryRun: boolean,
) {
  const connection = await connections.get(pkOf(connectionId));
  const { state, why } = stateOf(connection, clock.now());
  const woken = state === 'orphan' && !dryRun;
  if (woken) {
    await queue.send({ pk: pkOf(connectionId) });
    metrics.count('WakeUpsSent');
  }
  return { dryRun, connectionId, state, why, woken };
}

/** What the worker owns by the index, as far as its lease has run out by the items themselves. */
async function oneWorker(parts: ByHandParts, workerId: string, dryRun: boolean) {
  const { connections, clock } = parts;
  const owned: string[] = [];
  let from: Item | undefined;
  do {
    const page = await connections.ownedBy(workerId, from);
    owned.push(...page.rows.map(({ pk }) => pk));
    from = page.next;
  } while (from);
  const { found, broken } = await readItems(connections, owned);
  const now = clock.now();
  const orphans = found.filter((item) => item.leaseOwner === workerId && isOrphan(item, now)).map(({ pk }) => pk);
  const stillLeased = found.filter((item) => item.leaseOwner === workerId && item.leaseExpiresAtMs > now).length;
  const woken = await wake(parts, orphans, dryRun);
  return {
    dryRun,
    workerId,
    owned: owned.length,
    stillLeased,
    orphans: orphans.length,
    ...woken,
    connectionIds: orphans.slice(0, mostIds).map(idOf),
    broken: broken.map(({ pk, message }) => ({ connectionId: idOf(pk), message })),
  };
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
