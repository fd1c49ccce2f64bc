import { describe, expect, test } from '@jest/globals';
import { MassGuard } from '../../functions/mass-guard.ts';
import { type SweepParts, sweepThrough } from '../../functions/sweep.ts';
import { type Clock, systemClock } from '../../shared/clock.ts';
import { createLog } from '../../shared/log.ts';
import type { ConnectionsTable } from '../../shared/tables/connections.ts';

describe('the times of the sweeps', () => {
  /** Time goes on only by sleeping, and by what a sweep takes. */
  function fakeTime(sweepTakesMs: number[]) {
    let now = 0;
    const startedAt: number[] = [];
    const clock: Clock = { ...systemClock, monotonic: () => now, sleep: async (ms) => void (now += ms) };
    const empty = { rows: [], next: undefined };
    const inBucket: ConnectionsTable['inBucket'] = async () => {
      startedAt.push(now);
      now += sweepTakesMs[startedAt.length - 1] ?? 0;
      return empty;
    };
    const nothing = async () => undefined;
    const log = createLog('silent', {});
    const parts: SweepParts = {
      connections: { get: nothing, getAll: async () => [], inBucket, ownedBy: async () => empty },
      leases: { release: async () => 'refused' },
      workers: { all: async () => [], expire: async () => 'refused' },
      lease: { forMs: 20_000, skewMs: 1_000 },
      guard: new MassGuard(20_000),
      workerLease: false,
      seen: { orphans: 0, oldestAgeMs: 0 },
      queue: { send: nothing, depth: async () => 0 },
      metrics: { count: () => undefined, gauge: () => undefined, observe: () => undefined, publish: nothing },
      shards: 1,
      clock,
      log,
      random: () => 0,
    };
    return { startedAt, now: () => now, parts };
  }

  test.each<[string, number[], number, number[]]>([
    ['every five seconds within the minute', [], 75_000, [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55]],
    [
      'a long one pushes the next back, and they do not pile up',
      [0, 12_000],
      75_000,
      [0, 5, 17, 22, 27, 32, 37, 42, 47, 52, 57],
    ],
    ['never past the time that Lambda gives', [], 31_000, [0, 5, 10, 15, 20]],
    ['not at all without time', [], 9_000, []],
  ])('%s', async (_name, takesMs, lambdaMs, seconds) => {
    const time = fakeTime(takesMs);
    const remainingMs = () => lambdaMs - time.now();
    await sweepThrough(time.parts, { everyMs: 60_000, sweepMs: 5_000, marginMs: 10_000, remainingMs });
    expect(time.startedAt.map((ms) => ms / 1000)).toEqual(seconds);
  });
});
