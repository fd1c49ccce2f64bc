import { describe, expect, jest, test } from '@jest/globals';
import { ClockSkew } from '../../../shared/skew.ts';
import type { WorkersTable } from '../../../shared/tables/workers.ts';
import { clockAgrees, watchClock } from '../../../worker/clock-check.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { contextOf } from '../../support/worker-parts.ts';

/** A worker whose clock is ahead of the store's. @param away how many of the first reads aren't answered */
function worker({ aheadMs = 0, away = 0, takesMs = 10 } = {}) {
  const clock = new VirtualClock();
  const skew = new ClockSkew(clock);
  const state = { aheadMs };
  let reads = 0;
  const get = async () => {
    const sentAtMs = clock.now();
    await clock.sleep(takesMs);
    if (++reads <= away) throw new Error('away');
    const answeredAtMs = clock.now();
    skew.add({ sentAtMs, answeredAtMs, dateMs: Math.floor((answeredAtMs - state.aheadMs) / 1000) * 1000 });
    return undefined;
  };
  const { context, log, metrics } = contextOf({ clock, skew, workers: { get } as unknown as WorkersTable });
  const stop = new AbortController();
  const verdict = jest.fn();
  const check = async (forMs: number) => {
    void clockAgrees(context, stop.signal).then(verdict);
    await clock.advance(forMs);
  };
  const events = () => log.lines.map(({ event }) => event);
  return { context, clock, get, state, stop, verdict, check, log, events, metrics, reads: () => reads };
}

describe('before anything is owned', () => {
  test('a clock in step may start', async () => {
    const { verdict, check, events } = worker();
    await check(3_000);
    expect([verdict.mock.calls, events()]).toEqual([[[true]], []]);
  });

  test.each([3_000, -3_000])('a clock that is off by %i ms may not, and one line says so', async (aheadMs) => {
    const { verdict, check, log } = worker({ aheadMs });
    await check(3_000);
    expect(verdict.mock.calls).toEqual([[false]]);
    expect(log.lines).toEqual([{ event: 'clock.skewed', fields: { ahead_ms: expect.any(Number), allowed_ms: 500 } }]);
    expect(Math.abs(Number(log.lines[0]?.fields['ahead_ms']) - aheadMs)).toBeLessThan(600);
  });

  test('waits for a store that doesn’t answer yet', async () => {
    const { verdict, check, clock, metrics } = worker({ away: 20 });
    await check(3_000);
    expect(verdict).not.toHaveBeenCalled();
    await clock.advance(25_000);
    expect([verdict.mock.calls, metrics.of('StoreFaults')]).toEqual([[[true]], 20]);
  });

  test('ends when told to stop', async () => {
    const { verdict, check, stop } = worker({ away: 1_000 });
    await check(3_000);
    stop.abort();
    await check(1_000);
    expect(verdict).toHaveBeenCalledWith(true);
  });

  test('answers that take too long to tell leave it open: it starts, and says so', async () => {
    const { verdict, check, events, reads } = worker({ takesMs: 1_400 });
    await check(30_000);
    expect([verdict.mock.calls, events(), reads()]).toEqual([[[true]], ['clock.unsure'], 10]);
  });
});

describe('while it runs', () => {
  test('the difference is published, and said when it grows past what is allowed', async () => {
    const { context, clock, get, state, metrics, events } = worker();
    const end = new AbortController();
    const watched = watchClock(context, end.signal);
    const asking = async () => {
      for (let asked = 0; asked < 60; asked++) {
        void get();
        await clock.advance(1_130);
      }
    };
    await asking();
    expect([metrics.of('ClockSkewMs') < 150, events()]).toEqual([true, []]);
    state.aheadMs = -4_000;
    await asking();
    expect(Math.abs(metrics.of('ClockSkewMs') - 4_000)).toBeLessThan(600);
    expect(events()).toContain('clock.skewed');
    end.abort();
    await watched;
  });
});
