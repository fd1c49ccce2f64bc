import { setTimeout as sleep } from 'node:timers/promises';
import { type Case, under } from '../case.ts';
import { idsOf } from '../fleet.ts';
import { over } from '../metrics-log.ts';

const CONNECTIONS = 500;
/** What the published code needs. */
const BOUND_PERCENT = 35;
const WARM_UP_MS = 15_000;

export const idleCpu: Case = {
  name: 'idle-cpu',
  what: '500 idle connections on one worker: processor',
  mustBe: 'less than the published code',
  published: '35 % of a core, only for heartbeats',
  async run(bench) {
    const fleet = await bench.fleet({ workers: 1, env: { METRICS_EVERY: '1' } });
    const ids = idsOf('idle', CONNECTIONS);
    await fleet.start(ids, { rate: 0, atOnce: 20 });
    await fleet.allOpen(ids, 60_000);
    bench.say(`${ids.length} are open`);
    await sleep(WARM_UP_MS);
    const { cpuSeconds, seconds } = await over(fleet.system.worker(1), bench.quick ? 10_000 : 30_000);
    return { checks: [under('of a core', (100 * cpuSeconds) / seconds, BOUND_PERCENT, '%')] };
  },
};
