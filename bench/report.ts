/** How results are shown: to whoever waits, as JSON, and as the Markdown that is kept beside the code. */
import { bold, green, red, say } from '../local/console.ts';
import type { Case, Outcome } from './case.ts';

/** A case may have been tried twice; the last try counts, and the first is told. */
export interface Result {
  name: string;
  at: string;
  revision: string;
  what: string;
  mustBe: string;
  published: string;
  reached: boolean;
  outcome: Outcome;
  /** What the first try missed, when there was a second. */
  firstTryMissed: string[];
  /** The share of the machine, 0 to 1, that other processes used meanwhile. */
  othersShare: number;
  tookMs: number;
}

export interface Run {
  machine: string;
  quick: boolean;
  results: Result[];
}

/** From so much on, times may say more of the machine than of the code. */
const LOADED = 0.15;

export function resultOf(
  subject: Case,
  tries: Outcome[],
  at: { ms: number; revision: string; othersShare: number; tookMs: number },
): Result {
  const { name, what, mustBe, published } = subject;
  const outcome = tries.at(-1) ?? { checks: [] };
  const missed = (one: Outcome): string[] =>
    one.checks.filter(({ reached }) => !reached).map((check) => `${check.what}: ${check.measured}`);
  return {
    name,
    at: new Date(at.ms).toISOString(),
    revision: at.revision,
    what,
    mustBe,
    published,
    reached: outcome.checks.length > 0 && missed(outcome).length === 0,
    outcome,
    firstTryMissed: tries.length > 1 ? missed(tries[0] ?? { checks: [] }) : [],
    othersShare: at.othersShare,
    tookMs: at.tookMs,
  };
}

export function showOutcome(outcome: Outcome): void {
  for (const { what, measured, mustBe, reached } of outcome.checks) {
    say(`    ${reached ? green('✔') : red('✘')} ${what}: ${measured} (${mustBe})`);
  }
  for (const note of outcome.notes ?? []) say(`      ${note}`);
}

export function showRun({ results }: Run): void {
  say(`\n${bold('Results')}`);
  for (const result of results) {
    say(`\n${result.reached ? green('✔') : red('✘')} ${bold(result.what)}`);
    say(`    must be:    ${result.mustBe}`);
    say(`    measured:   ${measuredOf(result)}`);
    say(`    published:  ${result.published}`);
    if (result.firstTryMissed.length > 0) say(`    first try:  ${result.firstTryMissed.join('; ')}`);
    if (result.othersShare >= LOADED) say(`    under load: others used ${percent(result.othersShare)} of the machine`);
  }
  const reached = results.filter((result) => result.reached).length;
  say(`\n${reached} of ${results.length} reached`);
}

export function toMarkdown({ machine, quick, results }: Run): string {
  const rows = results.map((result) => [
    result.what,
    result.mustBe,
    measuredOf(result),
    result.published,
    result.reached ? 'yes' : '**no**',
    percent(result.othersShare),
  ]);
  const details = results.flatMap((result) => [
    `### ${result.name}`,
    '',
    `At ${result.at}, in ${Math.round(result.tookMs / 1000)} s, revision ${result.revision}.`,
    '',
    ...result.outcome.checks.map(
      ({ what, measured, mustBe, reached }) => `- ${reached ? '' : '**missed** '}${what}: ${measured} (${mustBe})`,
    ),
    ...(result.outcome.notes ?? []).map((note) => `- ${note}`),
    ...result.firstTryMissed.map((missed) => `- the first try missed ${missed}`),
    '',
  ]);
  return [
    '# Figures',
    '',
    `Measured by \`npm run bench${quick ? ' -- --quick' : ''}\` on ${machine}.`,
    'Everything runs on that one machine: the workers, the functions, DynamoDB (dynalite), SQS (fauxqs) and the source.',
    'The published code was measured on the same machine, with the same embedded services.',
    '"Others" is the share of the machine that processes outside the bench used meanwhile.',
    '',
    ...markdownTable([['case', 'must be', 'measured', 'published code', 'reached', 'others'], ...rows]),
    '',
    '## Each measurement',
    '',
    ...details,
  ].join('\n');
}

function measuredOf({ outcome }: Result): string {
  return outcome.checks.map(({ what, measured }) => `${what}: ${measured}`).join('; ');
}

function markdownTable([head = [], ...rows]: string[][]): string[] {
  const line = (cells: string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)];
}

const percent = (share: number): string => `${Math.round(share * 100)} %`;
