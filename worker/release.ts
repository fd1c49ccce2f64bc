import { describe } from '../shared/errors.ts';
import type { Seq } from '../shared/sequence.ts';
import type { StatusChange } from '../shared/tables/leases.ts';
import type { Context } from './context.ts';
import { type Ending, releaseFor, wakesUp } from './endings.ts';
import { type Lease, logged } from './lease.ts';

/** What the item is to say of the connection from now on. */
export type Leaving = { status: StatusChange; generation: number; position: Seq | undefined };

/**
 * Gives the lease back as the ending says, until that is answered or the lease is over; then it frees itself.
 * @returns whether somebody should be woken up for it
 */
export async function release(context: Context, lease: Lease, ending: Ending, leaving: Leaving): Promise<boolean> {
  const { clock, leases, log, config, metrics } = context;
  const given = releaseFor(ending, { ...leaving, nowMs: clock.now() });
  if (!given) return false;
  if (ending.why === 'failed') metrics.count('ConnectionsFailed');
  if (ending.why === 'drained') metrics.count('ConnectionsHandedOver');
  let write = { ...given, lastSeq: leaving.position };
  for (let unanswered = false; lease.valid(); ) {
    try {
      const after = await leases.release(lease.claim, write, clock.now());
      if (after !== 'refused') return wakesUp(ending, after);
      if (write.failedGeneration === undefined) return unanswered && wakesUp(ending, undefined);
      // It failed for good, but meanwhile something else is wanted, or nothing.
      write = { ...write, failedGeneration: undefined, status: { status: 'PENDING', attempts: 0 } };
    } catch (fault) {
      unanswered = true;
      metrics.count('StoreFaults');
      log.warn('release.unanswered', { ...logged(lease.claim), fault: describe(fault) });
      await clock.sleep(config.lease.heartbeatMs / 10, lease.signal);
    }
  }
  return wakesUp(ending, undefined);
}

/** Only a hint: when it gets lost, the next sweep finds the orphan. */
export async function wakeUp({ queue, log, metrics }: Context, lease: Lease): Promise<void> {
  try {
    await queue.send({ pk: lease.claim.pk });
  } catch (fault) {
    metrics.count('QueueFaults');
    log.warn('wakeup.unsent', { ...logged(lease.claim), fault: describe(fault) });
  }
}
