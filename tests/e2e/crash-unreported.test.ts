import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { gapsSince, percentile } from '../../local/measure.ts';
import { leaseMs, type Rig, startRig, sweepMs } from '../support/e2e.ts';

let rig: Rig;
const ids = Array.from({ length: 40 }, (_, index) => `c-${index + 1}`);
const boundMs = leaseMs + sweepMs + 2_000;

beforeAll(async () => {
  rig = await startRig('crash-unreported', { workers: 3, api: true, reportStops: false });
}, 90_000);
afterAll(() => rig?.stop(), 60_000);

test('a worker that is killed, and nobody says so: all back within lease + sweep + 2 s, with nothing missing', async () => {
  await rig.startAll(ids, 2);
  const { worker, held: concerned } = await rig.holder(ids);
  const { workerId } = worker;
  const killedAtMs = Date.now();
  worker.kill('SIGKILL');
  await rig.reopened(concerned, killedAtMs, boundMs + 10_000);
  const { connections } = await rig.source.report();
  const gaps = gapsSince(connections, killedAtMs);
  expect(gaps).toHaveLength(concerned.length);
  expect(percentile(gaps, 1)).toBeLessThan(boundMs);
  expect(Math.max(...connections.map(({ maxOpen }) => maxOpen))).toBe(1);
  await rig.complete(ids);
  expect(await rig.ownedBy(workerId, ids)).toEqual([]);
}, 60_000);
