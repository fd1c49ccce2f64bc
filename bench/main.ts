/**
 * `npm run bench`: measures the figures that holdfast is held to, on the local system, next to those of the published code.
 *
 *   node bench/main.ts [case ...] [--list] [--quick] [--json file] [--markdown file]
 *
 * Into a `--json` file that exists, the new results go beside those of the other cases. Exits with 0 only if every case was reached.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { bold, dim, messageOf, red, say, seconds } from '../local/console.ts';
import type { Bench, Case, Outcome } from './case.ts';
import { cases } from './cases.ts';
import { Fleet, type FleetOptions } from './fleet.ts';
import { describeMachine, revision, shareOfOthers, usage } from './machine.ts';
import { type Result, type Run, resultOf, showOutcome, showRun, toMarkdown } from './report.ts';

const TRIES = 2;

const { values, positionals } = parseArgs({
  options: {
    list: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    markdown: { type: 'string' },
  },
  allowPositionals: true,
});

let running: Fleet | null = null;

if (values.list) for (const { name, what } of cases) say(`${name.padEnd(20)} ${what}`);
else {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void (running?.end() ?? Promise.resolve()).finally(() => process.exit(130)));
  }
  process.exitCode = (await runAll(chosen(positionals))) ? 0 : 1;
}

function chosen(names: string[]): Case[] {
  const unknown = names.filter((name) => !cases.some((one) => one.name === name));
  if (unknown.length > 0) throw new Error(`no such case: ${unknown.join(', ')}; --list shows them all`);
  return names.length === 0 ? cases : cases.filter(({ name }) => names.includes(name));
}

async function runAll(subjects: Case[]): Promise<boolean> {
  const run: Run = { machine: describeMachine(), quick: values.quick, results: [] };
  const kept = values.json === undefined ? [] : await earlierResults(values.json);
  for (const subject of subjects) {
    say(`\n${bold(subject.name)}: ${subject.what}`);
    run.results.push(await measure(subject));
    // Written as it goes: a run takes long, and may be interrupted.
    const all = { ...run, results: inOrder([...run.results, ...kept]) };
    if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(all, null, 2)}\n`);
    if (values.markdown !== undefined) await writeFile(values.markdown, toMarkdown(all));
  }
  showRun(run);
  return run.results.every(({ reached }) => reached);
}

/** Of cases that aren't measured now: one can be measured again without all the others. */
async function earlierResults(file: string): Promise<Result[]> {
  try {
    return (JSON.parse(await readFile(file, 'utf8')) as Run).results;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** @param results the first of each name counts */
function inOrder(results: Result[]): Result[] {
  return cases.flatMap(({ name }) => results.find((result) => result.name === name) ?? []);
}

/** A case that misses is tried once more: the machine may have been busy with something else. */
async function measure(subject: Case): Promise<Result> {
  const tries: Outcome[] = [];
  for (;;) {
    const before = await usage();
    const revisionNow = await revision();
    const outcome = await attempt(subject);
    const after = await usage();
    tries.push(outcome);
    showOutcome(outcome);
    const tookMs = after.atMs - before.atMs;
    const othersShare = shareOfOthers(before, after);
    const result = resultOf(subject, tries, { ms: before.atMs, revision: revisionNow, othersShare, tookMs });
    if (result.reached || tries.length === TRIES) return result;
    say(dim('    once more'));
  }
}

async function attempt(subject: Case): Promise<Outcome> {
  const startedAt = performance.now();
  const died = Promise.withResolvers<never>();
  // Told by whichever await comes first; nobody may be waiting yet.
  died.promise.catch(() => undefined);
  const bench: Bench = {
    quick: values.quick,
    say: (line) => say(dim(`    ${seconds(performance.now() - startedAt).padStart(7)}  ${line}`)),
    async fleet(options: FleetOptions = {}) {
      await running?.end();
      running = new Fleet({ dir: `.local/bench/${subject.name}`, ...options, onDied: died.reject });
      await running.begin();
      return running;
    },
  };
  try {
    return await Promise.race([subject.run(bench), died.promise]);
  } catch (error) {
    say(`    ${red('✘')} ${messageOf(error)}`);
    return { checks: [{ what: 'the case ran', measured: messageOf(error), mustBe: 'to its end', reached: false }] };
  } finally {
    await running?.end();
    running = null;
  }
}
