import { once } from 'node:events';
import { publishEvery } from '../shared/metrics.ts';
import { clockAgrees, watchClock } from './clock-check.ts';
import type { Context } from './context.ts';
import { stayPresent } from './fence.ts';
import { Holdings } from './holdings.ts';
import { reportLoad } from './load.ts';
import { watchOwned } from './owned.ts';
import { follow, receiveWakeUps } from './wakeups.ts';

/** The rest of the stop timeout is for what follows the drain, and for being slow. */
const drainShare = 0.85;

/**
 * How a worker's life ended.
 * - drained    all was handed over in time
 * - undrained  not all; what wasn't frees itself when its lease runs out
 * - bad-clock  it never began: its clock is further off than the leases allow for
 * - unfenced   its own lease was lost, and not everything could be ended in time: this process must not go on
 */
export type WorkerEnd = 'drained' | 'undrained' | 'unfenced' | 'bad-clock';

/**
 * The whole life of a worker: register, take what the wake-ups point to, hold it, and hand everything over when told to
 * stop.
 * @param stop    aborts on SIGTERM
 * @param beat    called at every turn of the worker's own housekeeping, for the container's health check
 */
export async function runWorker(context: Context, stop: AbortSignal, beat: () => void): Promise<WorkerEnd> {
  const { presence } = context;
  const end = new AbortController();
  const beating = beatEvery(context, beat, end.signal);
  const ending = (await clockAgrees(context, stop)) ? await registeredLife(context, stop, end) : 'bad-clock';
  end.abort();
  presence.close();
  await beating;
  return ending;
}

async function registeredLife(context: Context, stop: AbortSignal, end: AbortController): Promise<WorkerEnd> {
  const registered = await context.presence.register(() => ({ held: 0, draining: false }), stop);
  return registered ? live(context, stop, end) : 'drained';
}

async function live(context: Context, stop: AbortSignal, end: AbortController): Promise<WorkerEnd> {
  const { clock, config, log, metrics, presence } = context;
  const holdings = new Holdings(context);
  metrics.gauge('ActiveConnections', 0);
  // Settles before the end only when a fence couldn't end everything in time.
  const present = stayPresent(context, holdings, end.signal);
  const unfenced = present.then(() => 'unfenced' as const);
  const background = Promise.all([
    watchClock(context, end.signal),
    // Also while it drains: what is still being stored may have been taken, or deleted.
    watchOwned(context, holdings, end.signal),
    publishEvery(metrics, config.metrics.everyMs, clock, end.signal),
    reportLoad(context, holdings, end.signal),
    context.traces?.sendUntil(end.signal),
  ]);
  const working = followAll(context, holdings, stop);

  if ((await Promise.race([aborted(stop), unfenced])) === 'unfenced') return 'unfenced';

  log.info('worker.draining', { held: holdings.held });
  const ending = await Promise.race([drain(context, holdings), unfenced]);
  if (ending === 'unfenced') return ending;
  if (ending === 'drained') await working;
  else holdings.fence();
  end.abort();
  await Promise.all([present, background]);
  await presence.tombstone();
  return ending;
}

async function drain({ clock, config, log }: Context, holdings: Holdings): Promise<'drained' | 'undrained'> {
  const inTime = new AbortController();
  const tooLate = clock.sleep(config.stopTimeoutMs * drainShare, inTime.signal).then(() => 'undrained' as const);
  const ending = await Promise.race([holdings.drain().then(() => 'drained' as const), tooLate]);
  inTime.abort();
  if (ending === 'undrained') log.error('worker.undrained', { held: holdings.held });
  return ending;
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
