import type { Drained, Progress } from './drain.ts';
import { type ExitCode, exitCodes } from './exit.ts';
import { dim, green, red, table } from './text.ts';
import type { Screen } from './watch.ts';

/** One line that changes on a terminal; elsewhere a line for each change. */
export function progressLine(screen: Screen): (progress: Progress) => void {
  let last = '';
  return ({ left, gone }) => {
    const text = `  it holds ${left}${left === 0 && !gone ? ', and its process is ending' : ''}`;
    if (text === last) return;
    last = text;
    screen.write(screen.isTTY ? `\r${text}\u001b[K` : `${text}\n`);
    if (screen.isTTY && left === 0 && gone) screen.write('\n');
  };
}

export function drainedText({ worker_id, done, held, left, gone, moved_to, waiting, seconds }: Drained): string {
  const whole = left === 0 && gone;
  const headline = whole
    ? `${green('✔')} ${worker_id} has ended; it had ${held} and took ${seconds} s`
    : `${red('✘')} ${worker_id} still owns ${left} after ${seconds} s${gone ? '' : ', and has not ended'}`;
  const rows = Object.entries(moved_to)
    .sort(([, a], [, b]) => b - a)
    .map(([owner, count]) => [owner, String(count)]);
  const lines = [headline, dim(`  ${done}`)];
  if (rows.length > 0) lines.push(table(['went to', 'connections'], rows, ['left', 'right']));
  if (waiting.length > 0) lines.push(`${red('✘')} without an owner: ${waiting.join(', ')}`);
  return lines.join('\n');
}

export function drainedExitCode({ left, gone, waiting }: Drained): ExitCode {
  return left === 0 && gone && waiting.length === 0 ? exitCodes.fine : exitCodes.trouble;
}
