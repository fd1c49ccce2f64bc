import { describe, expect, test } from '@jest/globals';
import { MassGuard } from '../../functions/mass-guard.ts';
import { type SweepParts, sweepThrough } from '../../functions/sweep.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { countedMetrics, keptLog } from '../support/worker-parts.ts';

/** A reconciler of which each look at the workers and each scan for orphans is written down. @param away looks that fail */
function reconciler({ workerLease, away = 0 }: { workerLease: boolean; away?: number }) {
  const clock = new VirtualClock();
  const looks: number[] = [];
  const scans: number[] = [];
  const empty = { rows: [], next: undefined };
  const parts: SweepParts = {
    connections: {
      get: async () => undefined,
      getAll: async () => [],
      ownedBy: async () => empty,
      inBucket: async () => {
        scans.push(clock.monotonic() / 1000);
        if (!workerLease && scans.length <= away) throw new Error('away');
        return empty;
      },
    },
    workers: {
      all: async () => {
        looks.push(clock.monotonic() / 1000);
        if (looks.length <= away) throw new Error('away');
        return [];
      },
      expire: async () => 'refused',
    },
    leases: { release: async () => 'refused' },
    queue: { send: async () => undefined, depth: async () => 0 },
    lease: { forMs: 20_000, skewMs: 1_000 },
    guard: new MassGuard(20_000),
    seen: { orphans: 0, oldestAgeMs: 0 },
    metrics: countedMetrics(),
    log: keptLog(),
    shards: 1,
    random: () => 0,
    workerLease,
    clock,
  };
  const run = async () => {
    const done = sweepThrough(parts, { everyMs: 30_000, sweepMs: 5_000, marginMs: 0, remainingMs: () => 60_000 });
    await clock.advance(30_000);
    return done;
  };
  return { run, looks, scans };
}

const everyFive = [0, 5, 10, 15, 20, 25];

describe('within its minute the reconciler', () => {
  test('looks at the workers at each sweep, and scans for orphans once', async () => {
    const { run, looks, scans } = reconciler({ workerLease: true });
    expect(await run()).toEqual({ sweeps: 6, failed: 0 });
    expect([looks, scans]).toEqual([everyFive, [0]]);
  });

  test('scans as soon as it can when the first sweeps failed', async () => {
    const { run, looks, scans } = reconciler({ workerLease: true, away: 2 });
    expect(await run()).toEqual({ sweeps: 6, failed: 2 });
    expect([looks, scans]).toEqual([everyFive, [10]]);
  });

  test('scans at each sweep without the worker lease, and doesn’t look at the workers', async () => {
    const { run, looks, scans } = reconciler({ workerLease: false });
    expect(await run()).toEqual({ sweeps: 6, failed: 0 });
    expect([looks, scans]).toEqual([[], everyFive]);
  });
});
