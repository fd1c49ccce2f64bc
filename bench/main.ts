/**
 * `npm run bench`: measures the figures that holdfast is held to, on the local system, next to those of the published code.
 *
 *   node bench/main.ts [case ...] [--list] [--quick] [--json file] [--markdown file]
 *
 * Exits with 0 only if every case was reached.
 */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { bold, dim, messageOf, red, say, seconds } from '../local/console.ts';
import type { Bench, Case, Outcome } from './case.ts';
import { cases } from './cases.ts';
import { Fleet, type FleetOptions } from './fleet.ts';
import { describeMachine, shareOfOthers, usage } from './machine.ts';
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
  const run: Run = { at: new Date().toISOString(), machine: describeMachine(), quick: values.quick, results: [] };
  for (const subject of subjects) {
    say(`\n${bold(subject.name)}: ${subject.what}`);
    run.results.push(await measure(subject));
    // Kept as it goes: a run takes long, and may be interrupted.
    if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(run, null, 2)}\n`);
    if (values.markdown !== undefined) await writeFile(values.markdown, toMarkdown(run));
  }
  showRun(run);
  return run.results.every(({ reached }) => reached);
}

/** A case that misses is tried once more: the machine may have been busy with something else. */
async function measure(subject: Case): Promise<Result> {
  const tries: Outcome[] = [];
  for (;;) {
    const before = await usage();
    const outcome = await attempt(subject);
    const after = await usage();
    tries.push(outcome);
    showOutcome(outcome);
    const result = resultOf(subject, tries, shareOfOthers(before, after), after.atMs - before.atMs);
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
