import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from '../../local/measure.ts';
import { type Case, under } from '../case.ts';
import { idsOf } from '../fleet.ts';
import { rssBytes } from '../machine.ts';

const SOCKETS = 2_000;
const BOUND_KB = 40;
const SETTLE_MS = 30_000;
const SAMPLES = 20;
const SAMPLE_EVERY_MS = 500;

export const idleMemory: Case = {
  name: 'idle-memory',
  what: '2,000 idle sockets on one worker',
  mustBe: 'under 40 KB each',
  published: '29 KB each (500 connections)',
  async run(bench) {
    const fleet = await bench.fleet({ workers: 1, env: { MAX_CONNECTIONS: '2500' } });
    const worker = fleet.system.worker(1);
    const settleMs = bench.quick ? 10_000 : SETTLE_MS;
    // What the first connections load and compile isn't theirs alone.
    const first = idsOf('first', 10);
    await fleet.start(first, { rate: 0 });
    await fleet.allOpen(first, 30_000);
    await sleep(settleMs);
    const before = await medianRss(worker.pid);
    const ids = idsOf('idle', bench.quick ? 500 : SOCKETS);
    await fleet.start(ids, { rate: 0, atOnce: 30 });
    await fleet.allOpen(ids, 60_000);
    bench.say(`${ids.length} are open`);
    await sleep(settleMs);
    const after = await medianRss(worker.pid);
    return {
      checks: [under('resident memory for each', (after - before) / ids.length / 1024, BOUND_KB, 'KB')],
      notes: [`the worker: ${megabytes(before)} before, ${megabytes(after)} with ${ids.length} more`],
    };
  },
};

async function medianRss(pid: number | null): Promise<number> {
  if (pid === null) throw new Error('the worker is gone');
  const samples: number[] = [];
  while (samples.length < SAMPLES) {
    samples.push(await rssBytes(pid));
    await sleep(SAMPLE_EVERY_MS);
  }
  return percentile(samples, 0.5);
}

const megabytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MB`;
