import { describe } from '../shared/errors.ts';
import type { Context } from './context.ts';
import type { Holdings } from './holdings.ts';

/**
 * Reports this worker to the workers table at every heartbeat: how much it holds, of how much, which revision, whether
 * it is going. Nothing depends on it but what people see; ownership is decided by the lease on each connection.
 */
export async function keepPresence(context: Context, holdings: Holdings, signal: AbortSignal): Promise<void> {
  const { clock, config } = context;
  const startedAtMs = clock.now();
  const report = (last: { expiredAtMs?: number }) => reportOnce(context, { holdings, startedAtMs, ...last });
  while (!signal.aborted) {
    await report({});
    await clock.sleep(config.lease.heartbeatMs, signal);
  }
  await report({ expiredAtMs: clock.now() });
}

async function reportOnce(
  { workers, workerId, config, clock, log, metrics }: Context,
  { holdings, startedAtMs, expiredAtMs }: { holdings: Holdings; startedAtMs: number; expiredAtMs?: number },
): Promise<void> {
  try {
    await workers.report({
      workerId,
      leaseExpiresAtMs: expiredAtMs ?? clock.now() + config.lease.forMs,
      held: holdings.held,
      capacity: config.maxConnections,
      draining: holdings.draining,
      revision: config.revision,
      taskArn: config.taskArn,
      startedAtMs,
      expiredAtMs,
    });
  } catch (fault) {
    metrics.count('StoreFaults');
    log.warn('presence.unanswered', { fault: describe(fault) });
  }
}
