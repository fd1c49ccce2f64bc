import { once } from 'node:events';
import type { Clock } from '../shared/clock.ts';

const escape = '\u001b[';
/** A screen of its own, so that what was there before is there again afterwards; and no cursor that blinks about in it. */
const enter = `${escape}?1049h${escape}?25l`;
const leave = `${escape}?25h${escape}?1049l`;
const home = `${escape}H`;
const clearLine = `${escape}K`;
const clearBelow = `${escape}J`;

export type Screen = Pick<NodeJS.WriteStream, 'write' | 'isTTY' | 'columns' | 'rows'>;

/**
 * Shows a text that changes, until the signal aborts. Each turn is one write over what is there: nothing is cleared
 * before it, so nothing flickers. Where the output is no terminal, one text follows the other.
 * @param troubled what to show instead when `show` fails; its first failure is thrown
 */
export async function watch(
  screen: Screen,
  clock: Clock,
  everyMs: number,
  signal: AbortSignal,
  show: () => Promise<string>,
  troubled: (fault: unknown) => string,
): Promise<void> {
  let text = await show();
  if (screen.isTTY) screen.write(enter);
  try {
    while (!signal.aborted) {
      screen.write(screen.isTTY ? frame(text, screen) : `${text}\n`);
      await clock.sleep(everyMs, signal);
      if (!signal.aborted) text = await show().catch(troubled);
    }
  } finally {
    if (screen.isTTY) screen.write(leave);
  }
}

/** As much of it as there is room for. A longer line would wrap, and push the rest off the screen. */
export function frame(text: string, screen: Pick<Screen, 'columns' | 'rows'>): string {
  // A terminal that doesn't know its size says 0.
  const columns = screen.columns || 80;
  const rows = screen.rows || 24;
  const lines = text.split('\n').slice(0, rows);
  return `${home}${lines.map((line) => `${cut(line, columns)}${clearLine}`).join('\r\n')}${clearBelow}`;
}

/** Colours take no room. */
function cut(line: string, columns: number): string {
  let room = columns;
  const sequences = new RegExp(`(${String.fromCharCode(27)}\\[[0-9;]*m)`);
  return line
    .split(sequences)
    .map((piece, index) => {
      if (index % 2 === 1) return piece;
      const kept = piece.slice(0, Math.max(0, room));
      room -= kept.length;
      return kept;
    })
    .join('');
}

/** Aborts at Ctrl-C. */
export function untilInterrupted(): AbortSignal {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) void once(process, name).then(() => stop.abort());
  return stop.signal;
}
