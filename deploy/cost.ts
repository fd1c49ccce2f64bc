/** `npm run deploy:cost -- --stage prod --param minWorkers=4 --price publicIpv4Hour=0 --json`: what an idle stack costs a month. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { idleCosts } from './cost/idle.ts';
import { withGiven } from './cost/prices.ts';

const ROOT = join(import.meta.dirname, '..');

async function compiledTemplate(stage: string, params: string[]): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-cost-'));
  try {
    const args = [join(ROOT, 'node_modules', 'serverless', 'bin', 'serverless.js'), 'package', '--stage', stage];
    // A build folder of its own: something else may be packaging.
    const given = [...params, `buildFolder=${join('.local', 'build', `cost-${process.pid}`)}`];
    const all = [...args, '--package', folder, ...given.flatMap((param) => ['--param', param])];
    await promisify(execFile)(process.execPath, all, { cwd: ROOT }).catch((error: Error & { stdout?: string }) => {
      throw new Error(error.stdout ?? error.message);
    });
    return JSON.parse(await readFile(join(folder, 'cloudformation-template-update-stack.json'), 'utf8'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      stage: { type: 'string', default: 'dev' },
      param: { type: 'string', multiple: true, default: [] },
      price: { type: 'string', multiple: true, default: [] },
      json: { type: 'boolean', default: false },
    },
  });
  const price = withGiven(values.price);
  const lines = idleCosts(await compiledTemplate(values.stage, values.param), price);
  const total = lines.reduce((sum, { dollars }) => sum + dollars, 0);
  if (values.json) {
    console.log(JSON.stringify({ stage: values.stage, dollarsAMonth: total, lines }, undefined, 2));
    return;
  }
  console.log(`An idle stack of stage ${values.stage}, a month, in us-east-1 at list prices:\n`);
  const width = Math.max(...lines.map(({ what }) => what.length));
  for (const { what, how, dollars } of lines) console.log(`${what.padEnd(width)}  ${money(dollars)}  ${how}`);
  console.log(`${'together'.padEnd(width)}  ${money(total)}`);
}

const money = (dollars: number): string => `$${dollars.toFixed(2)}`.padStart(8);

try {
  await main();
} catch (fault) {
  console.error(fault instanceof Error ? fault.message : String(fault));
  process.exitCode = 1;
}
