import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { waitFor } from '../../local/measure.ts';
import { atMost, type Case, exactly, holds } from '../case.ts';
import { type Fleet, idsOf } from '../fleet.ts';

const CAPACITY = 20;
const WAIT_MS = 15_000;
const SOON_MS = 2_000;

const fleetView = z.object({
  totals: z.object({ held: z.number(), capacity: z.number() }),
  orphans: z.object({ count: z.number(), connection_ids: z.array(z.string()) }),
  waiting: z.object({ count: z.number(), hint: z.string().nullable() }),
});

export const full: Case = {
  name: 'full',
  what: 'capacity exactly reached, then one more',
  mustBe: "the extra one waits, shows in GET /fleet and in an alarm's metric, and is taken as soon as there is room",
  published: '–',
  async run(bench) {
    const fleet = await bench.fleet({ env: { MAX_CONNECTIONS: String(CAPACITY), STOP_CHECK_EVERY: '2' } });
    const ids = idsOf('full', 2 * CAPACITY);
    await fleet.start(ids);
    await fleet.allOpen(ids, 30_000);
    bench.say(`two workers hold ${CAPACITY} each, and may hold no more`);
    await fleet.sendStart('extra');
    await sleep(WAIT_MS);
    const openTooSoon = (await fleet.reports(['extra'])).length;
    const view = fleetView.parse((await fleet.api.fleet()).body);
    const oldestSeconds = await oldestOrphanInMetrics(fleet);
    bench.say(`the extra one has waited for ${WAIT_MS / 1000} s`);
    const [first = ''] = ids;
    await fleet.sendStop(first);
    const [stopped] = await fleet.allClosed([first], 30_000);
    const openedAtMs = await waitFor('the extra one is open', 60_000, async () => {
      const [report] = await fleet.reports(['extra']);
      return report?.connects[0]?.at ?? null;
    });
    return {
      checks: [
        exactly('sockets of the extra one while all are full', openTooSoon, 0),
        exactly('GET /fleet: orphans', view.orphans.count, 1),
        exactly('GET /fleet: waiting', view.waiting.count, 1),
        holds('metric OldestOrphanAgeSeconds tells', oldestSeconds >= WAIT_MS / 1000 - 6, `${oldestSeconds} s`),
        atMost('open after there was room', openedAtMs - (stopped?.disconnects.at(-1)?.at ?? 0), SOON_MS),
      ],
      notes: [`GET /fleet says: ${view.waiting.hint}`],
    };
  },
};

/** What the reconciler published last. Locally it publishes into its log. */
async function oldestOrphanInMetrics(fleet: Fleet): Promise<number> {
  const log = await readFile(join(fleet.system.logDir, 'api.log'), 'utf8');
  const published = [...log.matchAll(/"OldestOrphanAgeSeconds":(\d+)/g)].at(-1)?.[1];
  return Number(published ?? -1);
}
