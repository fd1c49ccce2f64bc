/** A worker that goes, by SIGKILL or SIGTERM, while the others and its connections stay: the same story with different bounds. */
import { setTimeout as sleep } from 'node:timers/promises';
import { gapsSince } from '../local/measure.ts';
import type { Bench } from './case.ts';
import { idsOf } from './fleet.ts';

export interface Failover {
  /** Connections whose socket ended with the worker. */
  concerned: number;
  gapsMs: number[];
  /** Connections that had two sockets at once, at any time. */
  heldTwice: number;
  lost: number;
  twice: number;
  stored: number;
  /** Messages that the source was asked for again. */
  resent: number;
}

const CONNECTIONS = 300;

export async function failover(bench: Bench, signal: 'SIGKILL' | 'SIGTERM'): Promise<Failover> {
  const fleet = await bench.fleet({ workers: 3 });
  const ids = idsOf('held', bench.quick ? 60 : CONNECTIONS);
  await fleet.start(ids, { rate: 1 });
  await fleet.allOpen(ids, 30_000);
  bench.say(`${ids.length} are open, one message a second each`);
  // So that positions and renewals are in their rhythm.
  await sleep(12_000);
  const sinceMs = Date.now();
  fleet.system.killWorker(1, signal);
  bench.say(`${signal} to one of 3 workers`);
  // Its sockets have to be seen ending before their return can be waited for.
  await sleep(2_000);
  await fleet.allOpen(ids, 120_000);
  bench.say('all are open again');
  await sleep(5_000);
  const reports = await fleet.reports(ids);
  const account = await fleet.account(ids);
  const gapsMs = gapsSince(reports, sinceMs);
  return {
    concerned: gapsMs.length,
    gapsMs,
    heldTwice: reports.filter(({ maxOpen }) => maxOpen > 1).length,
    lost: account.lost,
    twice: account.twice,
    stored: account.stored,
    resent: reports.reduce((sum, { resent }) => sum + resent, 0),
  };
}
