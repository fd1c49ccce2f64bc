import { atMost, type Case, exactly, inSeconds, noMoreThan } from '../case.ts';
import { idsOf } from '../fleet.ts';

const BOUND_MS = 3_000;
const MOST_PERCENT = 60;
/** More at the same time wouldn't make one API process answer any faster. */
const AT_ONCE = 50;

export const startStorm: Case = {
  name: 'start-storm',
  what: '1,000 STARTs as fast as the API takes them, two workers',
  mustBe: 'all open within 3 s of the last answer, and neither worker holds more than 60 %',
  published: '–',
  async run(bench) {
    const fleet = await bench.fleet({ workers: 2 });
    const ids = idsOf('storm', bench.quick ? 200 : 1_000);
    const begunAtMs = Date.now();
    await fleet.start(ids, { rate: 0, atOnce: AT_ONCE });
    const answeredAtMs = Date.now();
    bench.say(`all answered after ${inSeconds(answeredAtMs - begunAtMs)}`);
    const reports = await fleet.allOpen(ids, 60_000);
    const lastOpenMs = Math.max(...reports.map(({ connects }) => connects[0]?.at ?? Number.POSITIVE_INFINITY));
    const held = new Map<string, number>();
    for (const { owner } of (await fleet.items()).values()) {
      if (owner !== null) held.set(owner, (held.get(owner) ?? 0) + 1);
    }
    const shares = fleet.system.workers.map(({ workerId }) => (100 * (held.get(workerId ?? '') ?? 0)) / ids.length);
    return {
      checks: [
        atMost('last open after the last answer', Math.max(0, lastOpenMs - answeredAtMs), BOUND_MS),
        noMoreThan('held by the fuller worker', Math.max(...shares), MOST_PERCENT, '%'),
        exactly('sockets held twice', reports.filter(({ maxOpen }) => maxOpen > 1).length, 0),
      ],
      notes: [`${Math.round((1000 * ids.length) / (answeredAtMs - begunAtMs))} STARTs a second were answered`],
    };
  },
};
