/** Nothing is orphaned: what the reconciler reads all the same, and how long its sweeps take. */
import type { SimulatedFleet } from '../world/fleet.ts';

export type Quiet = {
  sweeps: number;
  /** Read units and requests to DynamoDB and SQS, of all sweeps together. */
  readUnits: number;
  requests: number;
  /** How long the sweep took that also scans for orphans, and the others. */
  scanMs: number;
  sweepsMs: number[];
};

const minuteMs = 60_000;

/** The first minute of the schedule. */
export async function quietMinute(fleet: SimulatedFleet): Promise<Quiet> {
  fleet.ledger.clear();
  fleet.schedule();
  // The next minute's first sweep is not part of it.
  await fleet.time.runFor(minuteMs - 1);
  const { ledger, sweepsMs } = fleet;
  const [scanMs = 0, ...others] = sweepsMs;
  return {
    sweeps: sweepsMs.length,
    readUnits: ledger.sum('readUnits', ({ who }) => who === 'reconciler'),
    requests: ledger.sum('requests', ({ who, target }) => who === 'reconciler' && target !== 'cloudwatch'),
    scanMs,
    sweepsMs: others,
  };
}
