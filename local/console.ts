/** What a person sees of a run: one line per step, with how long it took. */

const interactive = process.stdout.isTTY === true;
const paint = (code: number, text: string): string => (interactive ? `\u001b[${code}m${text}\u001b[0m` : text);

export const green = (text: string): string => paint(32, text);
export const red = (text: string): string => paint(31, text);
export const dim = (text: string): string => paint(2, text);
export const bold = (text: string): string => paint(1, text);

export function say(line = ''): void {
  process.stdout.write(`${line}\n`);
}

export const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : JSON.stringify(error));

/** Says that a step was done, or that it failed, and how long it took. */
export async function step<T>(name: string, run: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  try {
    const result = await run();
    say(`  ${green('✔')} ${name} ${dim(seconds(performance.now() - startedAt))}`);
    return result;
  } catch (error) {
    say(`  ${red('✘')} ${name} ${dim(seconds(performance.now() - startedAt))}`);
    throw error;
  }
}

/** A table for people: the first column to the left, the others to the right. */
export function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('   '),
    )
    .map((line) => `  ${line}`)
    .join('\n');
}
