import { afterAll, describe, expect, test } from '@jest/globals';
import { describeViolation } from './harness/report.ts';
import { endProcesses, runSeeds } from './harness/seeds.ts';
import { variants } from './variants.ts';

/** A checker that never fails checks nothing: each protocol that is broken on purpose has to be found out. */
const most = 2000;
/** Most take a second or two, on a busy machine several times as long; this is for what hangs. */
const withinMs = 900_000;

describe('a broken protocol is found out', () => {
  afterAll(endProcesses);

  test.each(variants)(
    '$name: $flaw',
    async ({ name, workerLease }) => {
      const { broken, seeds } = await runSeeds({ from: 1, seeds: most, variant: name, workerLease });
      if (!broken) throw new Error(`${name} went through ${seeds} seeds`);
      console.log(`${name}: ${describeViolation(broken)}`);
      expect(broken.seed).toBeLessThanOrEqual(most);
    },
    withinMs,
  );
});
