import { fullJitterMs } from '../shared/backoff.ts';
import { describe } from '../shared/errors.ts';
import type { Received } from '../shared/queue.ts';
import type { Context } from './context.ts';
import type { Holdings } from './holdings.ts';

const retry = { baseMs: 200, capMs: 5000 };

/**
 * Wake-ups as they come, until the signal aborts. It asks for no more than there is room for, so that what this worker
 * can't take stays in the queue for others.
 */
export async function* receiveWakeUps(
  context: Context,
  holdings: Holdings,
  stop: AbortSignal,
): AsyncGenerator<Received> {
  const { queue, clock, log, metrics, random } = context;
  for (let failures = 0; !stop.aborted; ) {
    await holdings.roomFreed(stop);
    if (stop.aborted) return;
    try {
      // The last poll is waited for, also when the worker is told to stop: what it brings is given back below.
      yield* await queue.receive(holdings.room);
      failures = 0;
    } catch (fault) {
      failures++;
      metrics.count('QueueFaults');
      log.warn('queue.unanswered', { fault: describe(fault), failures });
      await clock.sleep(retry.baseMs + fullJitterMs(retry, failures, random()), stop);
    }
  }
}

/** A wake-up is only a hint: the table says what is to be done, and the hint is forgotten once that is done. */
export async function follow(context: Context, holdings: Holdings, received: Received): Promise<void> {
  const { wakeUp, done, back } = received;
  const { log, metrics, presence, traces } = context;
  if (!wakeUp) {
    // Left in the queue, it ends among the dead letters, where somebody can look at it.
    metrics.count('BadWakeUps');
    log.error('wakeup.unreadable');
    return;
  }
  const trace = traces?.begin(received.trace);
  trace?.annotate({ connection: wakeUp.pk, worker: presence.id });
  try {
    const outcome = await holdings.take(wakeUp.pk, wakeUp.after, trace);
    if (outcome === 'settled') await done();
    // Unanswered, it stays hidden for its visibility timeout, and is looked at again then.
    if (outcome === 'no-room') await back();
  } catch (fault) {
    // It comes again, and then there is nothing to do.
    metrics.count('QueueFaults');
    log.warn('wakeup.unsettled', { connection: wakeUp.pk, epoch: wakeUp.after?.epoch ?? null, fault: describe(fault) });
  } finally {
    trace?.end();
  }
}
