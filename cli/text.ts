import { styleText } from 'node:util';
import Table from 'cli-table3';

type Style = Parameters<typeof styleText>[0];

/** Plain where the output is no terminal, or NO_COLOR is set. */
const paint =
  (style: Style) =>
  (text: string): string =>
    styleText(style, text, { stream: process.stdout });

export const green = paint('green');
export const yellow = paint('yellow');
export const red = paint('red');
export const dim = paint('dim');
export const bold = paint('bold');

export type Align = 'left' | 'right';

/** Columns without lines between them, two blanks from the left. */
export function table(head: string[], rows: string[][], aligns: Align[] = []): string {
  const none = Object.fromEntries(borders.map((side) => [side, '']));
  const made = new Table({
    head: head.map(dim),
    chars: none,
    colAligns: aligns,
    style: { head: [], border: [], 'padding-left': 2, 'padding-right': 0 },
  });
  made.push(...rows);
  return made.toString().replaceAll(/ +$/gm, '');
}

const borders = [
  'top',
  'top-mid',
  'top-left',
  'top-right',
  'bottom',
  'bottom-mid',
  'bottom-left',
  'bottom-right',
  'left',
  'left-mid',
  'mid',
  'mid-mid',
  'right',
  'right-mid',
  'middle',
];

/** `1,204` */
export const number = (value: number): string => value.toLocaleString('en-US');

/** The largest unit that fits, and the one below it: `3 d 4 h`, `12 s`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
    ['s', 1],
  ] as const;
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first < 0) return '0 s';
  let left = seconds;
  const parts = units.slice(first, first + 2).map(([name, size]) => {
    const count = Math.floor(left / size);
    left -= count * size;
    return { count, text: `${count} ${name}` };
  });
  return parts
    .filter(({ count }) => count > 0)
    .map(({ text }) => text)
    .join(' ');
}

/** @param iso as the API shows times. @returns how long ago, or a dash */
export const since = (iso: string | null, nowMs: number): string =>
  iso === null ? '-' : duration(nowMs - Date.parse(iso));

/** On one line, and no control characters of somebody else's on this terminal. */
export function oneLine(text: string, most: number): string {
  const plain = text.replaceAll(/\p{Cc}+/gu, ' ');
  return plain.length <= most ? plain : `${plain.slice(0, most - 1)}…`;
}
