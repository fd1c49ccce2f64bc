import type { Status } from './status.ts';
import { bold, dim, duration, green, number, oneLine, red, since, table, yellow } from './text.ts';

const barWidth = 12;
const longestReason = 70;

/** The whole status for a person, without a line break at the end. */
export function statusText(status: Status): string {
  const now = Date.parse(status.at);
  const sections = [headline(status), workersText(status, now), connectionsText(status), failuresText(status, now)];
  return [...sections, verdict(status)].filter((section) => section !== '').join('\n\n');
}

function headline({ fleet, totals, at }: Status): string {
  const { workers, held, capacity, percent } = totals;
  const load = `${number(held)} of ${number(capacity)} held (${percent} %)`;
  return `${bold(fleet)}   ${plural(workers, 'worker')}, ${load}   ${dim(at)}`;
}

function workersText({ workers }: Status, now: number): string {
  if (workers.length === 0) return dim('  no workers');
  const rows = workers.map((worker) => [
    worker.worker_id,
    stateText(worker),
    number(worker.held),
    worker.state === 'alive' ? bar(worker.percent) : '',
    versionOf(worker.revision),
    worker.state === 'gone' ? `gone ${since(worker.gone_at, now)} ago` : since(worker.started_at, now),
  ]);
  return table(['worker', 'state', 'held', 'full', 'version', 'up'], rows, [
    'left',
    'left',
    'right',
    'left',
    'left',
    'left',
  ]);
}

function stateText({ state, draining }: Status['workers'][number]): string {
  if (state === 'alive') return draining ? yellow('draining') : green('alive');
  return state === 'silent' ? red('silent') : dim('gone');
}

function bar(percent: number): string {
  const filled = Math.min(barWidth, Math.round((percent / 100) * barWidth));
  const paint = percent >= 100 ? red : percent >= 85 ? yellow : green;
  return `${paint('█'.repeat(filled))}${dim('░'.repeat(barWidth - filled))} ${String(percent).padStart(3)} %`;
}

/** Of an image's address, what comes last: its tag or digest. */
function versionOf(revision: string): string {
  const last = revision.split('/').at(-1) ?? revision;
  return oneLine(last.replace(/@sha256:([0-9a-f]{12})[0-9a-f]*$/, '@$1'), 40);
}

function connectionsText({ connections, orphans, queue }: Status): string {
  const { STARTED, FAILED, STOPPED } = connections;
  const count = ({ count: n, more }: typeof STARTED) => `${number(n)}${more ? '+' : ''}`;
  const orphaned =
    orphans.count === 0
      ? green('0')
      : yellow(`${number(orphans.count)}, oldest ${duration(orphans.oldest_age_seconds * 1000)}`);
  const cells = [
    count(STARTED),
    FAILED.count === 0 ? '0' : red(count(FAILED)),
    count(STOPPED),
    orphaned,
    queue.wake_ups === null ? 'unknown' : number(queue.wake_ups),
  ];
  const lines = [table(['started', 'failed', 'stopped', 'without owner', 'wake-ups waiting'], [cells])];
  if (orphans.count > 0) lines.push(dim(oneLine(`  without owner: ${orphans.connection_ids.join(', ')}`, 160)));
  return lines.join('\n');
}

function failuresText({ recent_failures: failures }: Status, now: number): string {
  if (failures.length === 0) return '';
  const rows = failures.map(({ connection_id, reason, attempts, failed_at }) => [
    oneLine(connection_id, 40),
    oneLine(reason ?? '', longestReason),
    String(attempts),
    since(failed_at, now),
  ]);
  return table(['given up', 'reason', 'tries', 'ago'], rows, ['left', 'left', 'right', 'left']);
}

function verdict({ problems, failed }: Status): string {
  if (problems.length > 0) return problems.map((problem) => `${red('✘')} ${problem}`).join('\n');
  if (failed === 0) return `${green('✔')} all that is wanted is held, or on its way`;
  return `${yellow('!')} ${plural(failed, 'connection')} given up: a START tries again`;
}

const plural = (count: number, noun: string): string => `${number(count)} ${noun}${count === 1 ? '' : 's'}`;
