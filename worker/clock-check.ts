import { describe } from '../shared/errors.ts';
import type { Context } from './context.ts';

/** Answers fall into different parts of a second this far apart, and together they bound the difference closely. */
const betweenMs = 230;
const mostAnswers = 10;
const retryMs = 1000;

/**
 * Compares our wall clock with the store's before anything is owned: a lease is worth nothing to a worker whose clock is
 * further off than the leases allow for.
 * @returns false: it is too far off, and this worker must not start
 */
export async function clockAgrees(context: Context, stop: AbortSignal): Promise<boolean> {
  const { clock, config, log, metrics, presence, skew, workers } = context;
  const apartMs = config.lease.skewMs;
  for (let answers = 0; answers < mostAnswers && !stop.aborted; ) {
    try {
      await workers.get(presence.id);
      answers++;
    } catch (fault) {
      metrics.count('StoreFaults');
      log.warn('clock.unchecked', { fault: describe(fault) });
      await clock.sleep(retryMs, stop);
      continue;
    }
    const verdict = skew.judge(apartMs);
    if (verdict === 'within') return true;
    if (verdict === 'past') {
      log.error('clock.skewed', { ahead_ms: skew.estimateMs, allowed_ms: apartMs / 2 });
      return false;
    }
    await clock.sleep(betweenMs, stop);
  }
  log.warn('clock.unsure', { ahead_ms: skew.estimateMs, allowed_ms: apartMs / 2 });
  return true;
}

/** Publishes the difference while the worker runs, and says so when it grows past what is allowed. */
export async function watchClock({ clock, config, log, metrics, skew }: Context, end: AbortSignal): Promise<void> {
  while (!end.aborted) {
    await clock.sleep(config.metrics.everyMs, end);
    const aheadMs = skew.estimateMs;
    if (aheadMs === undefined) continue;
    metrics.gauge('ClockSkewMs', Math.abs(aheadMs));
    if (skew.judge(config.lease.skewMs) === 'past') {
      log.error('clock.skewed', { ahead_ms: aheadMs, allowed_ms: config.lease.skewMs / 2 });
    }
  }
}
