import { percentile, waitFor } from '../../local/measure.ts';
import { atMost, type Case, inSeconds } from '../case.ts';
import { idsOf } from '../fleet.ts';

const BOUND_MS = 1_000;

export const startToOpen: Case = {
  name: 'start-to-open',
  what: 'START to open socket, one at a time',
  mustBe: 'p99 under 1 s',
  published: '–',
  async run(bench) {
    const fleet = await bench.fleet();
    const ids = idsOf('one', bench.quick ? 30 : 200);
    const tookMs: number[] = [];
    for (const id of ids) {
      const sentAtMs = Date.now();
      await fleet.sendStart(id);
      const openedAtMs = await waitFor(`${id} is open`, 30_000, async () => {
        const [report] = await fleet.reports([id]);
        return report?.connects[0]?.at ?? null;
      });
      tookMs.push(openedAtMs - sentAtMs);
      if (tookMs.length % 50 === 0) bench.say(`${tookMs.length} of ${ids.length}`);
    }
    return {
      checks: [atMost(`p99 of ${ids.length}`, percentile(tookMs, 0.99), BOUND_MS)],
      notes: [`median ${inSeconds(percentile(tookMs, 0.5))}, longest ${inSeconds(Math.max(...tookMs))}`],
    };
  },
};
