/**
 * `npm run bench:scale`: a hundred thousand connections in simulated time. What the reconciler reads while nothing is
 * wrong, and how long it takes until all is owned again when a third of the workers is gone.
 *
 *   node bench/scale.ts [--quick] [--markdown file] [--dynamodb-ms 6] [--sqs-ms 15] [--connect-ms 50] [--index-lag-ms 50]
 *                       [--depth-lag-ms 1000] [--reports-within-ms 2000] [--cold-start-ms 500]
 *
 * It takes some GB of memory, and some minutes. Exits with 0 only if all is as it must be.
 */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { dim, say, seconds } from '../local/console.ts';
import { happen, type Recovery } from './scale/disaster.ts';
import { scalePage } from './scale/report.ts';
import { type Assumptions, plan } from './scale/scenarios.ts';
import { checksOf } from './scale/targets.ts';
import { usualLatencies } from './world/clients.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    markdown: { type: 'string' },
    'dynamodb-ms': { type: 'string', default: String(usualLatencies.dynamodbMs) },
    'sqs-ms': { type: 'string', default: String(usualLatencies.sqsMs) },
    'connect-ms': { type: 'string', default: '50' },
    'index-lag-ms': { type: 'string', default: '50' },
    'depth-lag-ms': { type: 'string', default: '1000' },
    'reports-within-ms': { type: 'string', default: '2000' },
    'cold-start-ms': { type: 'string', default: '500' },
  },
});

const assumed: Assumptions = {
  dynamodbMs: ms('dynamodb-ms'),
  sqsMs: ms('sqs-ms'),
  cloudwatchMs: usualLatencies.cloudwatchMs,
  connectMs: ms('connect-ms'),
  indexLagMs: ms('index-lag-ms'),
  depthLagMs: ms('depth-lag-ms'),
  reportsWithinMs: ms('reports-within-ms'),
  coldStartMs: ms('cold-start-ms'),
};

const recoveries: Recovery[] = [];
for (const disaster of plan(values.quick)) {
  const what = `${disaster.connections} connections on ${disaster.workers} workers, ${disaster.name}`;
  recoveries.push(await timed(what, () => happen(disaster, assumed)));
  // Kept as it goes: all of it takes long.
  if (values.markdown !== undefined) await writeFile(values.markdown, page());
}
say(`\n${page()}`);
// Workers in simulated time don't end by themselves.
process.exit(checksOf(recoveries).every(({ reached }) => reached) ? 0 : 1);

function page(): string {
  const checks = checksOf(recoveries);
  return scalePage({ at: new Date().toISOString(), quick: values.quick, assumed, recoveries, checks });
}

async function timed<T>(what: string, run: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const result = await run();
  say(dim(`${what}: ${seconds(performance.now() - startedAt)}`));
  return result;
}

function ms(
  name:
    | 'dynamodb-ms'
    | 'sqs-ms'
    | 'connect-ms'
    | 'index-lag-ms'
    | 'depth-lag-ms'
    | 'reports-within-ms'
    | 'cold-start-ms',
): number {
  const value = Number(values[name]);
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} must be milliseconds, not ${values[name]}`);
  return value;
}
