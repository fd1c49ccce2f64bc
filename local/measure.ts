/** How long things took, as the source saw them: its clock is the only one that no worker can be wrong about. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Report } from './source/ledger.ts';

/** Polls until `condition` gives something else than `null`. @throws with `what` when that takes longer than `withinMs` */
export async function waitFor<T>(what: string, withinMs: number, condition: () => Promise<T | null>): Promise<T> {
  const deadlineMs = Date.now() + withinMs;
  for (;;) {
    const result = await condition();
    if (result !== null) return result;
    if (Date.now() > deadlineMs) throw new Error(`not within ${Math.round(withinMs / 1000)} s: ${what}`);
    await sleep(100);
  }
}

/**
 * For each socket that ended since `sinceMs`: how long its connection then had none, in ms. Not over yet: `Infinity`. A connection whose next
 * socket was open before the old one ended had no gap.
 */
export function gapsSince(reports: readonly Report[], sinceMs: number): number[] {
  return reports.flatMap((report) => {
    const ended = report.disconnects.filter((disconnect) => disconnect.at >= sinceMs);
    return ended.map((disconnect) => {
      const next = report.connects.find((connect) => connect.socket > disconnect.socket);
      return next === undefined ? Number.POSITIVE_INFINITY : Math.max(0, next.at - disconnect.at);
    });
  });
}

/** @param share 0.5 for the median, 0.99 for the 99th percentile; `NaN` without values */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
