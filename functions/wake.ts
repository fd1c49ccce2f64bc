import { describe } from '../shared/errors.ts';
import type { Log } from '../shared/log.ts';
import type { Metrics } from '../shared/metrics.ts';
import type { Queue } from '../shared/queue.ts';
import type { WakeUp } from '../shared/wakeup.ts';

export type WakeParts = {
  queue: Pick<Queue, 'send' | 'depth'>;
  metrics: Metrics;
  log: Log;
  /** in [0, 1) */
  random: () => number;
};

/** @param justDead ids of the workers that were found dead just now */
export function apart<T extends WakeUp>(wakeUps: T[], justDead: string[]): { fresh: T[]; others: T[] } {
  const ids = new Set(justDead);
  const isFresh = ({ after }: WakeUp): boolean => after !== undefined && ids.has(after.owner);
  return { fresh: wakeUps.filter(isFresh), others: wakeUps.filter((wakeUp) => !isFresh(wakeUp)) };
}

export type Woken = { sent: number; skipped: number; failed: number; why: string | null };

/** Handed to the queue at the same time; it puts ten of them in a request. */
const mostAtOnce = 500;

/**
 * Sends a wake-up for each of `fresh`, and for the others as many as the queue doesn't hold already. While the workers are
 * full, or away, nobody takes any: each sweep would then lay another one for every orphan on top, and the first worker
 * with room would go through all of them. Which orphan a waiting wake-up is for can't be seen from outside the queue, so
 * the choice is made anew at each sweep, beginning somewhere else.
 *
 * Nobody can have sent one for a fresh orphan before, so what the queue holds is for others, and SQS's count of it may be a
 * minute old: when many workers die together, the wake-ups of the first would hold back those of the last.
 * @param fresh what workers left that were found dead just now
 */
export async function wake(
  { queue, metrics, log, random }: WakeParts,
  { fresh, others }: { fresh: WakeUp[]; others: WakeUp[] },
  dryRun: boolean,
): Promise<Woken> {
  const all = fresh.length + others.length;
  if (all === 0) return { sent: 0, skipped: 0, failed: 0, why: null };
  const waiting = others.length === 0 ? 0 : await queue.depth();
  const budget = Math.max(0, others.length - waiting);
  const skipped = others.length - budget;
  const full = skipped > 0 ? `wake-ups that the queue already holds: ${waiting}` : null;
  if (dryRun) return { sent: 0, skipped: all, failed: 0, why: ['dry run', full].filter(Boolean).join('; ') };

  const first = Math.floor(random() * others.length);
  const chosen = [...fresh, ...[...others.slice(first), ...others.slice(0, first)].slice(0, budget)];
  const faults: unknown[] = [];
  for (let start = 0; start < chosen.length; start += mostAtOnce) {
    const sends = chosen.slice(start, start + mostAtOnce).map((wakeUp) => queue.send(wakeUp));
    const outcomes = await Promise.allSettled(sends);
    faults.push(...outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : [])));
  }
  const sent = chosen.length - faults.length;
  metrics.count('WakeUpsSent', sent);
  if (faults.length === 0) return { sent, skipped, failed: 0, why: full };
  metrics.count('QueueFaults', faults.length);
  metrics.count('ReconcileErrors');
  log.error('wakeup.unsent', { count: faults.length, fault: describe(faults[0]) });
  return { sent, skipped, failed: faults.length, why: `the queue did not take ${faults.length} of them` };
}
