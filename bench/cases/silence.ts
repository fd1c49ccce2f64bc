import { setTimeout as sleep } from 'node:timers/promises';
import { atMost, type Case, exactly, holds, inSeconds } from '../case.ts';
import { type Fleet, idsOf } from '../fleet.ts';

const SHORT_MS = 10_000;
/** What was on its way when the silence began has been answered, or never will be. */
const LAST_ANSWER_MS = 4_000;
/** Past the lease of whoever renewed right before, and some. */
const LONG_MS = 30_000;
const LEASE_MS = 20_000;
const SWEEP_MS = 5_000;
const SPARE_MS = 2_000;

export const silence: Case = {
  name: 'silence',
  what: 'DynamoDB silent for 10 s, then for longer than the lease',
  mustBe:
    'nothing lost, nothing dropped; for longer than the lease: every socket closed before it ends, all back after',
  published: 'any failed renewal is taken for lost ownership',
  async run(bench) {
    const fleet = await bench.fleet({ proxied: true });
    const ids = idsOf('held', bench.quick ? 40 : 150);
    await fleet.start(ids);
    await fleet.allOpen(ids, 30_000);
    await sleep(8_000);

    fleet.proxy.control({ silentForMs: SHORT_MS });
    bench.say(`silent for ${SHORT_MS / 1000} s`);
    await sleep(SHORT_MS + 8_000);
    const dropped = (await fleet.reports(ids)).filter(({ disconnects }) => disconnects.length > 0).length;
    const lostShort = (await fleet.account(ids)).lost;
    await fleet.source.control({ rate: 1 });
    await sleep(3_000);

    fleet.proxy.control({ silentForMs: LONG_MS });
    bench.say(`silent for ${LONG_MS / 1000} s`);
    const beganMs = Date.now();
    await sleep(LAST_ANSWER_MS);
    const leaseEndsMs = await leaseEnds(fleet);
    await sleep(LONG_MS - LAST_ANSWER_MS - 1_000);
    const marginsMs = await leftOfLease(fleet, ids, leaseEndsMs, beganMs);
    await sleep(1_000);
    const answersAgainMs = Date.now();
    const back = await fleet.allOpen(ids, 120_000);
    const backMs = back.map(({ connects }) => (connects.at(-1)?.at ?? Number.POSITIVE_INFINITY) - answersAgainMs);
    bench.say('all are open again');
    await sleep(5_000);
    const { summary } = await fleet.source.report();
    const account = await fleet.account(ids);
    return {
      checks: [
        exactly('10 s: sockets dropped', dropped, 0),
        exactly('10 s: lost', lostShort, 0),
        holds(
          `30 s: each of ${ids.length} sockets closed before its lease ended`,
          Math.min(...marginsMs) > 0,
          `${inSeconds(Math.min(...marginsMs))} before, or earlier`,
        ),
        atMost('30 s: the last back after', Math.max(...backMs), LEASE_MS + SWEEP_MS + SPARE_MS),
        exactly('lost', account.lost, 0),
        exactly('twice', account.twice, 0),
        exactly('sockets held twice', summary.heldTwice, 0),
      ],
    };
  },
};

/** Until when everybody else leaves each connection to its owner: as long as its lease runs, and that of its worker where workers have one. */
async function leaseEnds(fleet: Fleet): Promise<Map<string, number>> {
  const [items, workers] = await Promise.all([fleet.items(), fleet.workerLeases()]);
  const ofWorker = (owner: string | null): number =>
    process.env.WORKER_LEASE === 'off' ? Number.POSITIVE_INFINITY : (workers.get(owner ?? '') ?? 0);
  return new Map([...items].map(([id, { expiresAtMs, owner }]) => [id, Math.min(expiresAtMs, ofWorker(owner))]));
}

/** How much of its lease was left when each socket closed. Not closed: `-Infinity`. */
async function leftOfLease(
  fleet: Fleet,
  ids: string[],
  leaseEndsMs: Map<string, number>,
  sinceMs: number,
): Promise<number[]> {
  return (await fleet.reports(ids)).map(({ id, open, disconnects }) => {
    const closedAtMs = disconnects.findLast(({ at }) => at >= sinceMs)?.at;
    if (open > 0 || closedAtMs === undefined) return Number.NEGATIVE_INFINITY;
    return (leaseEndsMs.get(id) ?? 0) - closedAtMs;
  });
}
