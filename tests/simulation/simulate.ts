// npm run simulate -- [--seeds 2000] [--from 1] [--seed S [--trace]] [--variant name] [--worker-lease on|off]
import { parseArgs } from 'node:util';
import { describeTotal, describeViolation, explain } from './harness/report.ts';
import { endProcesses, runSeeds, workerLeaseOf } from './harness/seeds.ts';
import { simulate } from './harness/simulation.ts';
import { variantNamed } from './variants.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '2000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    variant: { type: 'string' },
    'worker-lease': { type: 'string' },
  },
});
const lease = values['worker-lease'];
if (lease !== undefined && lease !== 'on' && lease !== 'off') throw new Error('--worker-lease is on or off');
const workerLease = lease === undefined ? undefined : lease === 'on';
const variant = values.variant === undefined ? undefined : variantNamed(values.variant);
const flags = `${variant ? ` --variant ${variant.name}` : ''}${lease === undefined ? '' : ` --worker-lease ${lease}`}`;

process.exitCode = (values.seed === undefined ? await many() : await one(Number(values.seed))) ? 0 : 1;

async function one(seed: number): Promise<boolean> {
  const outcome = await simulate({
    seed,
    trace: values.trace,
    variant,
    workerLease: workerLease ?? workerLeaseOf(seed),
  });
  for (const line of outcome.lines) console.log(line);
  console.log(`${describeViolation(outcome)}\ntrace hash ${outcome.hash}, ${outcome.steps} steps`);
  return outcome.violation === undefined;
}

async function many(): Promise<boolean> {
  const startedMs = performance.now();
  let saidMs = startedMs;
  const total = await runSeeds({
    from: Number(values.from),
    seeds: Number(values.seeds),
    variant: variant?.name,
    workerLease,
    onProgress: ({ seeds, virtualMs }) => {
      if (performance.now() - saidMs < 5000) return;
      saidMs = performance.now();
      const perSecond = seeds / ((saidMs - startedMs) / 1000);
      console.log(
        `${seeds} seeds, ${perSecond.toFixed(0)} a second, ${(virtualMs / 3_600_000).toFixed(1)} virtual hours`,
      );
    },
  });
  await endProcesses();
  const { broken } = total;
  if (broken) {
    const { seed } = broken;
    console.log(
      await explain({ seed, trace: true, variant, workerLease: workerLease ?? workerLeaseOf(seed) }, broken, flags),
    );
  }
  console.log(describeTotal(total, performance.now() - startedMs));
  return broken === undefined;
}
