import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Report } from '../../local/source/ledger.ts';
import { type Case, exactly, noMoreThan } from '../case.ts';
import { type Fleet, idsOf } from '../fleet.ts';

/** Attempts get rarer by doubling up to one in 15 s on average: ten on the way there, and twice as many after it are luck enough. */
const mostAttempts = (forSeconds: number): number => 10 + forSeconds / 7.5;
const MOST_PERCENT_IN_A_SECOND = 25;
const WARM_UP_MS = 20_000;

const connectionView = z.object({ status: z.string(), reason: z.string().nullable(), attempts: z.number() });

export const hastySource: Case = {
  name: 'hasty-source',
  what: 'source closes at once after accepting, for 5 minutes',
  mustBe: 'attempts bounded and jittered, other connections unaffected, `status` tells',
  published: '–',
  async run(bench) {
    const fleet = await bench.fleet();
    const hasty = idsOf('hasty', bench.quick ? 20 : 60);
    const others = idsOf('other', bench.quick ? 20 : 100);
    for (const id of hasty) await fleet.source.control({ id, closeAfterOpenMs: 0 });
    await fleet.start(others);
    await fleet.allOpen(others, 30_000);
    const startedAtMs = Date.now();
    await fleet.start(hasty);
    const forSeconds = bench.quick ? 60 : 300;
    for (let minute = 1; minute <= forSeconds / 60; minute += 1) {
      await sleep(60_000);
      bench.say(`${minute} min`);
    }
    const reports = await fleet.reports(hasty);
    const dials = reports.map((report) => report.dials);
    const told = await howManyTell(fleet, hasty);
    const otherReports = await fleet.reports(others);
    const account = await fleet.account(others);
    const inASecond = (100 * mostInOneSecond(reports, startedAtMs + WARM_UP_MS)) / hasty.length;
    return {
      checks: [
        noMoreThan(`attempts of any in ${forSeconds} s`, Math.max(...dials), mostAttempts(forSeconds), 'attempts'),
        noMoreThan('dialled in the same second, once rare', inASecond, MOST_PERCENT_IN_A_SECOND, '% of them'),
        exactly('status RETRYING with its reason and attempts', told, hasty.length),
        exactly('other sockets closed', otherReports.filter(({ disconnects }) => disconnects.length > 0).length, 0),
        exactly('lost by others', account.lost, 0),
      ],
      notes: [`${(dials.reduce((sum, one) => sum + one, 0) / dials.length).toFixed(1)} attempts each on average`],
    };
  },
};

function mostInOneSecond(reports: Report[], sinceMs: number): number {
  const counts = new Map<number, number>();
  for (const { at } of reports.flatMap(({ connects }) => connects).filter((connect) => connect.at >= sinceMs)) {
    const second = Math.floor(at / 1000);
    counts.set(second, (counts.get(second) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}

async function howManyTell(fleet: Fleet, ids: string[]): Promise<number> {
  let told = 0;
  for (const id of ids) {
    const { status, reason, attempts } = connectionView.parse((await fleet.api.connection(id)).body);
    if (status === 'RETRYING' && reason !== null && attempts > 1) told += 1;
  }
  return told;
}
