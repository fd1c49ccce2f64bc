import type { Config } from '../shared/config.ts';
import type { Connection } from '../shared/connection.ts';
import type { Tombstones } from './tombstones.ts';

/**
 * Since when a connection has had nobody, as far as the item that was acquired can tell.
 *
 * Given back: since then (after a STOP: since the START that made it wanted again). Left by a dead worker, or its lease ran
 * out: since the last renewal that was confirmed. It was held a little longer than that, by one heartbeat at most after a
 * crash: what is measured errs on the long side.
 * @returns Unix ms; undefined when its socket was never open, so that there is nothing to be missed
 */
export function downSinceMs(
  before: Connection,
  { config, tombstones }: { config: Pick<Config, 'lease' | 'connectionLease' | 'workerLease'>; tombstones: Tombstones },
): number | undefined {
  if (before.openedAtMs === undefined) return undefined;
  if (before.leaseOwner === undefined) return before.updatedAtMs;
  const workerLeaseEndMs = tombstones.leaseEndOf(before.leaseOwner);
  if (workerLeaseEndMs !== undefined) return workerLeaseEndMs - config.lease.forMs;
  // With the worker lease, this one is the backstop, and renewed too seldom to tell when its owner went away.
  return config.workerLease ? before.leaseExpiresAtMs : before.leaseExpiresAtMs - config.connectionLease.forMs;
}
