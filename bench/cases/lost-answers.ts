import { setTimeout as sleep } from 'node:timers/promises';
import { type Case, exactly } from '../case.ts';
import { idsOf, type Owned } from '../fleet.ts';

const ONE_OF = 50;
const LOOK_EVERY_MS = 5_000;

/** Claims too lose their answers; what counts begins when all are held. */
export const lostAnswers: Case = {
  name: 'lost-answers',
  what: 'DynamoDB answers lost for 1 of 50 successful writes',
  mustBe: '0 changes of owner',
  published: 'any failed renewal is taken for lost ownership',
  async run(bench) {
    const fleet = await bench.fleet({ proxied: true });
    const ids = idsOf('held', bench.quick ? 40 : 150);
    fleet.proxy.control({ dropAnswerEvery: ONE_OF });
    await fleet.start(ids);
    await fleet.allOpen(ids, 60_000);
    await fleet.source.control({ reset: true });
    const first = await fleet.items();
    const minutes = bench.quick ? 1 : 4;
    const untilMs = Date.now() + minutes * 60_000;
    const changed = new Set<string>();
    while (Date.now() < untilMs) {
      await sleep(LOOK_EVERY_MS);
      const now = await fleet.items();
      for (const id of ids) if (!sameLease(first.get(id), now.get(id))) changed.add(id);
    }
    const { droppedAnswers, byOperation } = fleet.proxy.counts();
    bench.say(`${droppedAnswers} answers were lost in ${minutes} min`);
    const reports = await fleet.reports(ids);
    fleet.proxy.control({ dropAnswerEvery: 0 });
    const account = await fleet.account(ids);
    return {
      checks: [
        exactly('changes of owner or epoch', changed.size, 0),
        exactly('sockets closed', reports.filter(({ disconnects }) => disconnects.length > 0).length, 0),
        exactly('lost', account.lost, 0),
        exactly('twice', account.twice, 0),
      ],
      notes: [`${droppedAnswers} answers lost in ${minutes} min; requests: ${JSON.stringify(byOperation)}`],
    };
  },
};

function sameLease(a: Owned | undefined, b: Owned | undefined): boolean {
  return a !== undefined && b !== undefined && a.owner === b.owner && a.epoch === b.epoch;
}
