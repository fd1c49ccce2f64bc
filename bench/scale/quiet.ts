/** Nothing is orphaned: what the reconciler reads all the same, and how long its sweeps take. */
import { SimulatedFleet } from '../world/fleet.ts';
import { type Assumptions, type Size } from './scenarios.ts';

export type Quiet = Size & {
  minutes: number;
  sweeps: number;
  /** Read units and requests to DynamoDB and SQS, of all sweeps together. */
  readUnits: number;
  requests: number;
  /** How long the sweeps took that also scan for orphans, and the others; with the publication of their metrics. */
  scanMs: number[];
  sweepMs: number[];
};

const minutes = 2;
const minuteMs = 60_000;

export async function quiet(size: Size & { env: Record<string, string> }, assumed: Assumptions): Promise<Quiet> {
  const fleet = new SimulatedFleet({
    ...size,
    traffic: { connectMs: assumed.connectMs },
    latencies: assumed,
    indexLagMs: assumed.indexLagMs,
    depthLagMs: assumed.depthLagMs,
  });
  await fleet.begin();
  fleet.schedule();
  fleet.ledger.clear();
  await fleet.time.runFor(minutes * minuteMs - 1);
  const { ledger, sweepsMs, config } = fleet;
  const perMinute = Math.round(minuteMs / config.reconcile.sweepMs);
  return {
    connections: size.connections,
    workers: size.workers,
    minutes,
    sweeps: sweepsMs.length,
    readUnits: ledger.sum('readUnits', ({ who }) => who === 'reconciler'),
    requests: ledger.sum('requests', ({ who, target }) => who === 'reconciler' && target !== 'cloudwatch'),
    scanMs: sweepsMs.filter((_, index) => index % perMinute === 0),
    sweepMs: sweepsMs.filter((_, index) => index % perMinute !== 0),
  };
}
