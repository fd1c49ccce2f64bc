import type { Connection } from '../shared/connection.ts';
import { isWanted } from '../shared/connection.ts';
import { describe } from '../shared/errors.ts';
import type { Predecessor } from '../shared/tables/leases.ts';
import type { Context } from './context.ts';
import { downSinceMs } from './gap.ts';
import { Lease, logged } from './lease.ts';
import { firstWriting } from './term.ts';

/**
 * Losing is an outcome, not an error.
 * - held      a living worker owns it, or nobody may try yet
 * - unwanted  stopped, or failed for good
 * - gone      there is no such connection
 * - late      won, but the answer came when our own lease, or this worker's, was over
 */
export type ClaimOutcome =
  | { won: true; connection: Connection; lease: Lease; downSinceMs?: number | undefined }
  | { won: false; why: 'held'; owner: string | undefined }
  | { won: false; why: 'unwanted' | 'gone' | 'late' };

/**
 * Takes the connection if it is free, or if its owner is dead. Call it for a connection that this worker doesn't hold.
 * @param after who is said to have left it; believed only if that worker's tombstone is there
 * @throws when DynamoDB doesn't answer; the connection may then be ours in the table. The next look at it, or at all
 *         that we own, finds that and adopts it.
 */
export async function claim(context: Context, pk: string, after?: Predecessor): Promise<ClaimOutcome> {
  const { log, metrics, presence } = context;
  const workerId = presence.id;
  let unanswered: Error | undefined;
  try {
    const taken = await acquire(context, pk, after && (await isDead(context, after.owner)) ? after : undefined);
    if (taken !== 'refused') return taken;
  } catch (fault) {
    unanswered = fault instanceof Error ? fault : new Error(describe(fault));
    metrics.count('ClaimsUnanswered');
    log.warn('claim.unanswered', { connection: pk, epoch: after?.epoch ?? null, fault: describe(fault) });
  }
  const found = await context.connections.get(pk);
  if (!found) return { won: false, why: 'gone' };
  if (found.leaseOwner === workerId) return adopt(context, found);
  if (!isWanted(found)) return { won: false, why: 'unwanted' };
  // Free, and our write may still be on its way: nobody can say yet whose it will be.
  if (unanswered && found.leaseOwner === undefined) throw unanswered;
  if (found.leaseOwner !== undefined && (await isDead(context, found.leaseOwner))) {
    const taken = await acquire(context, pk, { owner: found.leaseOwner, epoch: found.leaseEpoch });
    if (taken !== 'refused') return taken;
  }
  return { won: false, why: 'held', owner: found.leaseOwner };
}

/** The item says that it is ours, but we don't hold it: an acquisition was applied and its answer was lost. */
export async function adopt(context: Context, found: { pk: string; leaseEpoch: number }): Promise<ClaimOutcome> {
  const { leases, clock, log, presence, config } = context;
  const mine = { pk: found.pk, owner: presence.id, epoch: found.leaseEpoch };
  if (!presence.mayClaim()) return { won: false, why: 'late' };
  const writing = firstWriting(clock, config.connectionLease);
  const adopted = await leases.adopt(mine, writing.expiresAtMs, clock.now());
  if (adopted === 'refused') return { won: false, why: 'held', owner: undefined };
  log.info('claim.adopted', logged({ ...mine, epoch: adopted.leaseEpoch }));
  return won(context, adopted, mine.owner, writing.sentAtMs);
}

async function acquire(context: Context, pk: string, dead: Predecessor | undefined): Promise<ClaimOutcome | 'refused'> {
  const { leases, clock, presence, config } = context;
  const workerId = presence.id;
  if (!presence.mayClaim()) return { won: false, why: 'late' };
  const writing = firstWriting(clock, config.connectionLease);
  const taken = await leases.acquire(pk, workerId, writing.expiresAtMs, clock.now(), dead);
  if (taken === 'refused') return taken;
  const { before, ...connection } = taken;
  const outcome = won(context, connection, workerId, writing.sentAtMs);
  return outcome.won ? { ...outcome, downSinceMs: downSinceMs(before, context) } : outcome;
}

async function isDead({ config, presence, tombstones }: Context, owner: string): Promise<boolean> {
  return config.workerLease && owner !== presence.id && tombstones.isDead(owner);
}

/** Looks again, now that the answer is there: what was true when the write was sent may be over. */
function won(context: Context, connection: Connection, owner: string, sentAtMs: number): ClaimOutcome {
  const owned = { pk: connection.pk, owner, epoch: connection.leaseEpoch };
  const lease = new Lease(context, owned, { sentAtMs, expiresAtMs: connection.leaseExpiresAtMs });
  return lease.valid() ? { won: true, connection, lease } : { won: false, why: 'late' };
}
