import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from '../../local/measure.ts';
import { atMost, type Case, inSeconds } from '../case.ts';
import { idsOf } from '../fleet.ts';

const BOUND_MS = 3_000;
const CHECK_EVERY_SECONDS = 2;

export const stopToClosed: Case = {
  name: 'stop-to-closed',
  what: 'STOP to closed socket',
  mustBe: 'p99 under 3 s, with the check every 2 s',
  published: 'sockets never closed',
  async run(bench) {
    const fleet = await bench.fleet({ env: { STOP_CHECK_EVERY: String(CHECK_EVERY_SECONDS) } });
    const ids = idsOf('stop', bench.quick ? 40 : 200);
    await fleet.start(ids);
    await fleet.allOpen(ids, 30_000);
    bench.say(`${ids.length} are open`);
    const sentAtMs = new Map<string, number>();
    for (const id of ids) {
      // At any moment between two checks.
      await sleep(Math.random() * 200);
      sentAtMs.set(id, Date.now());
      await fleet.sendStop(id);
    }
    const reports = await fleet.allClosed(ids, 30_000);
    const tookMs = reports.map(
      ({ id, disconnects }) => (disconnects.at(-1)?.at ?? Number.NaN) - (sentAtMs.get(id) ?? 0),
    );
    return {
      checks: [atMost(`p99 of ${ids.length}`, percentile(tookMs, 0.99), BOUND_MS)],
      notes: [`median ${inSeconds(percentile(tookMs, 0.5))}, longest ${inSeconds(Math.max(...tookMs))}`],
    };
  },
};
