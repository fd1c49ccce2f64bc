import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Clock } from '../../shared/clock.ts';
import { Presence } from '../../worker/presence.ts';
import { settled, VirtualClock } from '../support/virtual-clock.ts';
import { configOf, countedMetrics, keptLog } from '../support/worker-parts.ts';
import { type Fate, fakeWorkers } from '../support/workers-table.ts';

const skewMs = 1_000;
const load = { held: 1, draining: false };

type Step =
  | { do: 'wait' | 'freeze'; ms: number }
  | { do: 'fate'; fate: Fate }
  | { do: 'end'; which: number; fate: Exclude<Fate, 'held'> }
  | { do: 'set'; aheadMs: number }
  | { do: 'reconcile'; aheadMs: number };

/** Two clocks within half of the skew of the true time are apart by no more than the skew. */
const ahead = fc.integer({ min: -skewMs / 2, max: skewMs / 2 });
const certain = fc.constantFrom('answered', 'lost', 'unreachable');
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('wait'), ms: fc.integer({ min: 1, max: 9_000 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('freeze'), ms: fc.integer({ min: 1, max: 40_000 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('fate'), fate: fc.oneof(certain, fc.constant<Fate>('held')) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('end'), which: fc.nat(5), fate: certain }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('set'), aheadMs: ahead }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('reconcile'), aheadMs: ahead }) },
) as fc.Arbitrary<Step>;

/** A worker that lives under one id after the other, beside a reconciler that buries whoever is overdue. */
function world() {
  const clock = new VirtualClock();
  let aheadMs = 0;
  const own: Clock = {
    now: () => clock.now() + aheadMs,
    monotonic: () => clock.monotonic(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    timer: (ms, fn) => clock.timer(ms, fn),
  };
  const { workers, rows, fates, held } = fakeWorkers();
  let ids = 0;
  const parts = { config: configOf({ WORKER_LEASE: 'on' }), log: keptLog(), metrics: countedMetrics(), workers };
  const presence = new Presence({ ...parts, clock: own, newId: () => `w-${++ids}` });
  const until = new AbortController();
  const living = (async () => {
    while (await presence.register(() => load, until.signal)) {
      await presence.keep(() => load, until.signal);
      if (!(await presence.bury(until.signal))) return;
    }
  })();

  const buried: string[] = [];
  /** Without the wait that the real one adds: the margin that the holder keeps is enough by itself. */
  const reconcile = async (reconcilerAheadMs: number) => {
    const nowMs = clock.now() + reconcilerAheadMs;
    for (const row of rows.values()) {
      if (row.expiredAtMs !== undefined || row.leaseExpiresAtMs >= nowMs) continue;
      rows.set(row.workerId, { ...row, expiredAtMs: nowMs });
      buried.push(row.workerId);
    }
    await settled();
  };
  const take = async (next: Step): Promise<void> => {
    switch (next.do) {
      case 'wait':
        return clock.advance(next.ms);
      case 'freeze':
        return clock.freeze(next.ms);
      case 'fate':
        fates.now = next.fate;
        return;
      case 'end':
        await held.splice(next.which, 1)[0]?.end(next.fate);
        return;
      case 'set':
        aheadMs = next.aheadMs;
        return;
      case 'reconcile':
        return reconcile(next.aheadMs);
    }
  };
  const end = async () => {
    until.abort();
    fates.now = 'answered';
    while (held.length > 0) await held.splice(0, 1)[0]?.end('answered');
    await clock.advance(20_000);
    await living;
    presence.close();
  };
  return { presence, rows, buried, take, end };
}

test('no worker counts on an id that somebody may take from: whoever is buried has stopped before, whatever gets lost', async () => {
  let alive = 0;
  let buried = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
      const { presence, rows, buried: byReconciler, take, end } = world();
      for (const next of steps) {
        await take(next);
        const dead = [...rows.values()].filter(({ expiredAtMs }) => expiredAtMs !== undefined);
        expect(dead.filter(({ workerId }) => presence.valid(workerId))).toEqual([]);
        alive += presence.valid(presence.id) ? 1 : 0;
      }
      buried += byReconciler.length;
      await end();
    }),
    { numRuns: 2_000 },
  );
  // It would hold as well for a worker that never lives, or where nobody is ever buried.
  expect([alive > 10_000, buried > 100]).toEqual([true, true]);
}, 60_000);
