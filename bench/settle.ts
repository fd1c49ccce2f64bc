/** When connections became as they were last said to be, and stayed so. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fleet } from './fleet.ts';

const LOOK_EVERY_MS = 100;

export type Wish = 'STARTED' | 'STOPPED';

/**
 * Looks for `forMs`, and returns for each connection how long after `saidAtMs` it was last seen to be different: owned with one socket, or
 * free with none. `Infinity`: it still was different at the end.
 */
export async function settledAfter(
  fleet: Fleet,
  saidAtMs: ReadonlyMap<string, number>,
  wish: Wish,
  forMs: number,
): Promise<number[]> {
  const ids = [...saidAtMs.keys()];
  const lastWrongAtMs = new Map<string, number>();
  const untilMs = Date.now() + forMs;
  let wrong: string[] = [];
  while (Date.now() < untilMs) {
    wrong = await differing(fleet, ids, wish);
    for (const id of wrong) lastWrongAtMs.set(id, Date.now());
    await sleep(LOOK_EVERY_MS);
  }
  return ids.map((id) => {
    if (wrong.includes(id)) return Number.POSITIVE_INFINITY;
    const saidAt = saidAtMs.get(id) ?? 0;
    return Math.max(0, (lastWrongAtMs.get(id) ?? saidAt) - saidAt);
  });
}

async function differing(fleet: Fleet, ids: string[], wish: Wish): Promise<string[]> {
  const [items, reports] = await Promise.all([fleet.items(), fleet.reports(ids)]);
  const open = new Map(reports.map((report) => [report.id, report.open]));
  return ids.filter((id) => {
    const item = items.get(id);
    const sockets = open.get(id) ?? 0;
    if (item?.desiredState !== wish) return true;
    return wish === 'STARTED' ? item.owner === null || sockets !== 1 : item.owner !== null || sockets !== 0;
  });
}
