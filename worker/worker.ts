import { once } from 'node:events';
import { publishEvery } from '../shared/metrics.ts';
import type { Context } from './context.ts';
import { Holdings } from './holdings.ts';
import { watchOwned } from './owned.ts';
import { keepPresence } from './presence.ts';
import { follow, receiveWakeUps } from './wakeups.ts';

/** The rest of the stop timeout is for what follows the drain, and for being slow. */
const drainShare = 0.85;

/**
 * The whole life of a worker: take what the wake-ups point to, hold it, and hand everything over when told to stop.
 * @param stop    aborts on SIGTERM
 * @param beat    called at every turn of the worker's own housekeeping, for the container's health check
 * @returns drained: all was handed over in time. What wasn't frees itself when its lease runs out.
 */
export async function runWorker(context: Context, stop: AbortSignal, beat: () => void): Promise<{ drained: boolean }> {
  const { clock, config, log, metrics } = context;
  const holdings = new Holdings(context);
  const end = new AbortController();
  metrics.gauge('ActiveConnections', 0);
  const background = Promise.all([
    watchOwned(context, holdings, stop),
    keepPresence(context, holdings, end.signal),
    publishEvery(metrics, config.metrics.everyMs, clock, end.signal),
    beatEvery(context, beat, end.signal),
  ]);

  const following = followAll(context, holdings, stop);

  await aborted(stop);
  log.info('worker.draining', { held: holdings.held });
  const inTime = new AbortController();
  const tooLate = clock.sleep(config.stopTimeoutMs * drainShare, inTime.signal).then(() => false);
  const drained = await Promise.race([holdings.drain().then(() => true), tooLate]);
  inTime.abort();
  if (!drained) log.error('worker.undrained', { held: holdings.held });
  await following;
  end.abort();
  await background;
  return { drained };
}

async function followAll(context: Context, holdings: Holdings, stop: AbortSignal): Promise<void> {
  const underway = new Set<Promise<void>>();
  for await (const wakeUp of receiveWakeUps(context, holdings, stop)) {
    const followed = follow(context, holdings, wakeUp).finally(() => underway.delete(followed));
    underway.add(followed);
  }
  await Promise.all(underway);
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

async function beatEvery({ clock, config }: Context, beat: () => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    beat();
    await clock.sleep(config.lease.heartbeatMs, signal);
  }
}
