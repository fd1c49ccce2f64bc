import { setTimeout as sleep } from 'node:timers/promises';
import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { pkOf } from '../../shared/connection.ts';
import { atMost, type Case, exactly, inSeconds } from '../case.ts';
import { idsOf, inParallel } from '../fleet.ts';

const HEARTBEAT_MS = 5_000;
/** For the request that finds the item gone, and its answer. */
const REQUEST_MS = 250;

export const deletedItem: Case = {
  name: 'deleted-item',
  what: 'item of a live connection deleted by hand',
  mustBe: 'its socket closes within one heartbeat (5 s); START works again',
  published: '–',
  async run(bench) {
    const fleet = await bench.fleet();
    const ids = idsOf('deleted', bench.quick ? 20 : 100);
    await fleet.start(ids);
    await fleet.allOpen(ids, 30_000);
    await sleep(8_000);
    const deletedAtMs = new Map<string, number>();
    await inParallel(ids, 5, async (id) => {
      const Key = { pk: { S: pkOf(id) } };
      await fleet.system.dynamodb.send(new DeleteItemCommand({ TableName: fleet.system.tables.connections, Key }));
      deletedAtMs.set(id, Date.now());
    });
    bench.say(`${ids.length} items are deleted`);
    const reports = await fleet.allClosed(ids, 30_000);
    const closedMs = reports.map(
      ({ id, disconnects }) => (disconnects[0]?.at ?? Number.NaN) - (deletedAtMs.get(id) ?? 0),
    );
    const left = (await fleet.items()).size;
    const startedAtMs = Date.now();
    await fleet.start(ids);
    const again = await fleet.allOpen(ids, 30_000);
    const openMs = again.map(({ connects }) => (connects.at(-1)?.at ?? Number.NaN) - startedAtMs);
    bench.say('all were started again');
    await sleep(3_000);
    const account = await fleet.account(ids);
    return {
      checks: [
        atMost(`the last of ${ids.length} closed after`, Math.max(...closedMs), HEARTBEAT_MS + REQUEST_MS),
        exactly('items that came back by themselves', left, 0),
        exactly('open after START again', again.filter(({ open }) => open === 1).length, ids.length),
        exactly('lost', account.lost, 0),
        exactly('twice', account.twice, 0),
      ],
      notes: [`open again ${inSeconds(Math.max(...openMs))} after the first START`],
    };
  },
};
