import type { Context } from './context.ts';
import type { Holdings } from './holdings.ts';

/**
 * Says in the log, as often as metrics are published, how full this worker is. The metric has no dimension for the worker:
 * each id would be a metric of its own, paid for by the month. The dashboard reads these lines instead.
 */
export async function reportLoad({ clock, config, log }: Context, holdings: Holdings, end: AbortSignal): Promise<void> {
  while (!end.aborted) {
    await clock.sleep(config.metrics.everyMs, end);
    log.info('worker.load', { held: holdings.held, capacity: config.maxConnections, draining: holdings.draining });
  }
}
