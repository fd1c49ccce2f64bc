/** Tables and numbers of the reports that are kept beside the code. */

export function markdownTable([head = [], ...rows]: string[][]): string {
  const line = (cells: string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  const aligned = head.map((_, column) => (column === 0 ? '---' : '--:'));
  return [line(head), line(aligned), ...rows.map(line)].join('\n');
}

/** Three digits that say something, and thousands apart. */
export function figure(value: number): string {
  const digits = value === 0 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export const dollars = (value: number): string => `$${figure(value)}`;
