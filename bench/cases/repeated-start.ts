import { setTimeout as sleep } from 'node:timers/promises';
import { type Case, exactly } from '../case.ts';
import { idsOf, inParallel } from '../fleet.ts';

const TIMES = 10;
const AT_ONCE = 50;
/** One check for what is wanted, and a renewal, with time to spare. */
const SETTLE_MS = 13_000;

export const repeatedStart: Case = {
  name: 'repeated-start',
  what: 'START repeated 10 times for live connections, in parallel',
  mustBe: '0 sockets held twice, no position lost',
  published: '7 of 20 connections ended up with two sockets on two workers',
  async run(bench) {
    const fleet = await bench.fleet();
    const ids = idsOf('live', bench.quick ? 20 : 100);
    await fleet.start(ids, { rate: 2 });
    await fleet.allOpen(ids, 30_000);
    await sleep(SETTLE_MS);
    const before = await fleet.items();
    const again = Array.from({ length: TIMES }, () => ids).flat();
    await inParallel(again, AT_ONCE, (id) => fleet.sendStart(id, 2));
    bench.say(`${again.length} STARTs more were answered`);
    await sleep(SETTLE_MS);
    const after = await fleet.items();
    const reports = await fleet.reports(ids);
    const account = await fleet.account(ids);
    const moved = ids.filter(
      (id) => before.get(id)?.owner !== after.get(id)?.owner || before.get(id)?.epoch !== after.get(id)?.epoch,
    );
    const back = ids.filter((id) => (after.get(id)?.lastSeq ?? 0) < (before.get(id)?.lastSeq ?? 0));
    return {
      checks: [
        exactly('sockets held twice', reports.filter(({ maxOpen }) => maxOpen > 1).length, 0),
        exactly('sockets closed', reports.filter(({ disconnects }) => disconnects.length > 0).length, 0),
        exactly('changes of owner or epoch', moved.length, 0),
        exactly('positions that went back', back.length, 0),
        exactly('lost', account.lost, 0),
        exactly('twice', account.twice, 0),
      ],
    };
  },
};
