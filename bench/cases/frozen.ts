import { setTimeout as sleep } from 'node:timers/promises';
import { atMost, type Case, exactly, inSeconds } from '../case.ts';
import { idsOf } from '../fleet.ts';

const FROZEN_MS = 45_000;
const BOUND_MS = 1_000;

/**
 * The frozen worker has a proxy of its own. What it had sent before it froze has reached the proxy while it was frozen, so every
 * write that arrives there after the waking was begun after the waking.
 */
export const frozen: Case = {
  name: 'frozen',
  what: 'SIGSTOP a worker for 45 s, then SIGCONT',
  mustBe: 'others take over; on waking it closes all its sockets within 1 s and stores nothing under an old epoch',
  published: 'it never notices: 18 of 60 connections held twice for good, 1,669 messages stored twice',
  async run(bench) {
    const fleet = await bench.fleet({ workers: 2 });
    const worker = await fleet.addProxiedWorker();
    const frozenId = worker.workerId;
    const ids = idsOf('held', bench.quick ? 60 : 150);
    // A few at a time, so that each worker gets its part.
    await fleet.start(ids, { atOnce: 4 });
    await fleet.allOpen(ids, 30_000);
    await sleep(12_000);
    const before = await fleet.items();
    const concerned = ids.filter((id) => before.get(id)?.owner === frozenId);
    const frozenAtMs = Date.now();
    worker.kill('SIGSTOP');
    bench.say(`the worker that holds ${concerned.length} of ${ids.length} is frozen`);
    await sleep(FROZEN_MS);
    const meanwhile = await fleet.items();
    const takenOver = concerned.filter((id) => meanwhile.get(id)?.owner !== frozenId).length;
    fleet.proxy.resetCounts();
    const wokeAtMs = Date.now();
    worker.kill('SIGCONT');
    bench.say(`it goes on; ${takenOver} are owned by others`);
    await sleep(8_000);
    const writes = fleet.proxy.counts().byOperation.BatchWriteItem ?? 0;
    const reports = await fleet.reports(ids);
    const account = await fleet.account(ids);
    const after = await fleet.items();
    const lateItems = [...account.messages].flatMap(([, messages]) =>
      messages.filter(({ workerId, timestampMs }) => workerId === frozenId && timestampMs > frozenAtMs + 1_000),
    );
    const closedAfterMs = reports
      .filter(({ id }) => concerned.includes(id))
      .map(
        ({ disconnects }) => (disconnects.find(({ at }) => at >= wokeAtMs)?.at ?? Number.POSITIVE_INFINITY) - wokeAtMs,
      );
    const backAfterMs = reports
      .filter(({ id }) => concerned.includes(id))
      .map(({ connects }) => (connects.find(({ at }) => at > frozenAtMs)?.at ?? Number.POSITIVE_INFINITY) - frozenAtMs);
    return {
      checks: [
        exactly(`of its ${concerned.length} taken over`, takenOver, concerned.length),
        atMost('its last socket closed after waking', Math.max(...closedAfterMs), BOUND_MS),
        exactly('batches of messages that it sent after waking', writes, 0),
        exactly('items it stored of what it read after freezing', lateItems.length, 0),
        exactly('owned by it under the old epoch afterwards', ownedStill(concerned, before, after), 0),
        exactly('sockets held twice in the end', reports.filter(({ open }) => open !== 1).length, 0),
        exactly('lost', account.lost, 0),
        exactly('twice', account.twice, 0),
      ],
      notes: [`the last was held by another after ${inSeconds(Math.max(...backAfterMs))}`],
    };
  },
};

function ownedStill(
  ids: string[],
  before: Map<string, { epoch: number }>,
  after: Map<string, { epoch: number }>,
): number {
  return ids.filter((id) => (after.get(id)?.epoch ?? 0) <= (before.get(id)?.epoch ?? 0)).length;
}
