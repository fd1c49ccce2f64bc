import type { Connection } from '../shared/connection.ts';
import { describe } from '../shared/errors.ts';
import { completeUpTo, type Seq } from '../shared/sequence.ts';
import { profileOf } from '../sources/index.ts';
import type { Context } from './context.ts';
import { window } from './lane.ts';
import { type Lease, logged } from './lease.ts';

const retryMs = 500;

/**
 * Where to resume after the one before us: its last position in the item, or later, as far as the messages that it
 * stored are complete. What is stored beyond a hole comes again and lands on the same keys.
 * Tries for as long as the lease lasts: a guess would lose messages or fetch a day of them again.
 * @param over aborts when nobody wants to know any more
 */
export async function recoverPosition(
  context: Context,
  connection: Connection,
  lease: Lease,
  over: AbortSignal,
): Promise<Seq | undefined> {
  if (!profileOf(connection.source.name)?.resumes) return undefined;
  while (!over.aborted && lease.valid()) {
    try {
      const { keys, truncated } = await context.messages.newestNumbered(connection.pk, window.entries + 1);
      return completeUpTo(keys, connection.lastSeq, truncated);
    } catch (fault) {
      context.metrics.count('StoreFaults');
      context.log.warn('position.unanswered', { ...logged(lease.claim), fault: describe(fault) });
      await context.clock.sleep(retryMs, over);
    }
  }
  return undefined;
}
