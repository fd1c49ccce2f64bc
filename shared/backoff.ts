export type Backoff = { baseMs: number; capMs: number };

/**
 * Full jitter: anything between nothing and the capped exponential, so that a thousand clients which failed together
 * don't come back together. Rule: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 * @param failures how many tries have failed so far, 1 for the first wait
 * @param random   in [0, 1)
 * @returns milliseconds
 */
export function fullJitterMs({ baseMs, capMs }: Backoff, failures: number, random: number): number {
  const exponent = Math.min(Math.max(failures - 1, 0), 30);
  return Math.floor(random * Math.min(capMs, baseMs * 2 ** exponent));
}
