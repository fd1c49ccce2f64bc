import type { Connection } from '../shared/connection.ts';
import { isWanted } from '../shared/connection.ts';
import { describe } from '../shared/errors.ts';
import type { Context } from './context.ts';
import { Lease } from './lease.ts';

/**
 * Losing is an outcome, not an error.
 * - held      another worker owns it, or nobody may try yet
 * - unwanted  stopped, or failed for good
 * - gone      there is no such connection
 * - late      won, but the answer came when the lease was over
 */
export type ClaimOutcome =
  | { won: true; connection: Connection; lease: Lease }
  | { won: false; why: 'held'; owner: string | undefined }
  | { won: false; why: 'unwanted' | 'gone' | 'late' };

/**
 * Takes the connection if it is free. Call it for a connection that this worker doesn't hold.
 * @throws when DynamoDB doesn't answer; the connection may then be ours in the table. The next look at it, or at all
 *         that we own, finds that and adopts it.
 */
export async function claim(context: Context, pk: string): Promise<ClaimOutcome> {
  const { workerId, leases, clock, log, metrics } = context;
  let unanswered: Error | undefined;
  const term = newTerm(context);
  try {
    const taken = await leases.acquire(pk, workerId, term.expiresAtMs, clock.now());
    if (taken !== 'refused') return won(context, taken, term.sentAtMs);
  } catch (fault) {
    unanswered = fault instanceof Error ? fault : new Error(describe(fault));
    metrics.count('ClaimsUnanswered');
    log.warn('claim.unanswered', { connection: pk, fault: describe(fault) });
  }
  const found = await context.connections.get(pk);
  if (!found) return { won: false, why: 'gone' };
  if (found.leaseOwner === workerId) return adopt(context, found);
  if (!isWanted(found)) return { won: false, why: 'unwanted' };
  // Free, and our write may still be on its way: nobody can say yet whose it will be.
  if (unanswered && found.leaseOwner === undefined) throw unanswered;
  return { won: false, why: 'held', owner: found.leaseOwner };
}

/** The item says that it is ours, but we don't hold it: an acquisition was applied and its answer was lost. */
export async function adopt(context: Context, found: { pk: string; leaseEpoch: number }): Promise<ClaimOutcome> {
  const { workerId, leases, clock, log } = context;
  const term = newTerm(context);
  const mine = { pk: found.pk, owner: workerId, epoch: found.leaseEpoch };
  const adopted = await leases.adopt(mine, term.expiresAtMs, clock.now());
  if (adopted === 'refused') return { won: false, why: 'held', owner: undefined };
  log.info('claim.adopted', { connection: found.pk, epoch: adopted.leaseEpoch });
  return won(context, adopted, term.sentAtMs);
}

function newTerm({ clock, config }: Context) {
  return { sentAtMs: clock.monotonic(), expiresAtMs: clock.now() + config.lease.forMs };
}

function won(context: Context, connection: Connection, sentAtMs: number): ClaimOutcome {
  const owned = { pk: connection.pk, owner: context.workerId, epoch: connection.leaseEpoch };
  const lease = new Lease(context, owned, { sentAtMs, expiresAtMs: connection.leaseExpiresAtMs });
  return lease.valid() ? { won: true, connection, lease } : { won: false, why: 'late' };
}
