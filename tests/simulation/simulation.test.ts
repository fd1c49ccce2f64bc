import { afterAll, describe, expect, test } from '@jest/globals';
import { describeTotal, explain } from './harness/report.ts';
import { endProcesses, runSeeds, workerLeaseOf } from './harness/seeds.ts';
import { simulate } from './harness/simulation.ts';

/** About a minute of CPU time: half a minute on two cores that have nothing else to do. */
const seeds = 2000;
/** On a busy machine it may take ten times as long; this is for what hangs. */
const withinMs = 900_000;

describe('the fleet in simulation', () => {
  afterAll(endProcesses);

  test(
    `keeps all invariants for ${seeds} seeds`,
    async () => {
      const startedMs = performance.now();
      const total = await runSeeds({ from: 1, seeds });
      const { broken } = total;
      if (broken) {
        const { seed } = broken;
        const settings = { seed, trace: true, variant: undefined, workerLease: workerLeaseOf(seed) };
        throw new Error(await explain(settings, broken, ''));
      }
      console.log(describeTotal(total, performance.now() - startedMs));
      expect(total.seeds).toBe(seeds);
      // It would also keep them if nothing happened.
      expect(total.messages).toBeGreaterThan(100 * seeds);
      for (const fault of [
        'crash',
        'freeze',
        'sigterm',
        'store.unanswered',
        'store.late',
        'reconciler.hangs',
        'deletion',
      ]) {
        expect(total.faults).toHaveProperty([fault]);
      }
    },
    withinMs,
  );

  test.each([true, false])(
    'goes the same way each time, with the worker lease %p',
    async (workerLease) => {
      for (const seed of [11, 12, 13]) {
        const settings = { seed, trace: true, variant: undefined, workerLease };
        const once = await simulate(settings);
        await simulate({ ...settings, seed: seed + 100 });
        const again = await simulate(settings);
        expect(again.hash).toBe(once.hash);
        expect(again.lines).toEqual(once.lines);
        expect(once.steps).toBeGreaterThan(500);
      }
    },
    withinMs,
  );

  test(
    'another seed goes another way',
    async () => {
      const settings = { trace: false, variant: undefined, workerLease: true };
      const [one, other] = [await simulate({ ...settings, seed: 1 }), await simulate({ ...settings, seed: 2 })];
      expect(one.hash).not.toBe(other.hash);
    },
    withinMs,
  );
});
