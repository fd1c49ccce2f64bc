import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { waitFor } from '../../local/measure.ts';
import { leaseMs, type Rig, startRig } from '../support/e2e.ts';
import { workerLease } from '../support/worker-parts.ts';

let rig: Rig;
const ids = Array.from({ length: 20 }, (_, index) => `c-${index + 1}`);

beforeAll(async () => {
  rig = await startRig('reconciler', { workers: 3 });
}, 90_000);
afterAll(() => rig?.stop(), 60_000);

test('absent while a worker dies: what that worker held waits, and is back when the reconciler is', async () => {
  await rig.startAll(ids, 5);
  const { worker, held: concerned } = await rig.holder(ids);
  const { workerId } = worker;
  const killedAtMs = Date.now();
  worker.kill('SIGKILL');
  await waitFor('the end of its lease', 3 * leaseMs, async () => {
    const leases =
      workerLease === 'on'
        ? [await rig.workerRow(workerId ?? '')]
        : await Promise.all(concerned.map((id) => rig.item(id)));
    return leases.every((lease) => (lease?.leaseExpiresAtMs ?? 0) + 1_000 < Date.now()) || null;
  });
  // Workers don't look for orphans.
  expect(await rig.ownedBy(workerId, ids)).toEqual(concerned);
  // Two of them, which don't know of each other.
  rig.keepSweeping();
  rig.keepSweeping();
  await rig.reopened(concerned, killedAtMs);
  expect(await rig.ownedBy(workerId, ids)).toEqual([]);
}, 60_000);

test('two at once while another worker dies: each connection is held once', async () => {
  const { worker, held: concerned } = await rig.holder(ids);
  const killedAtMs = Date.now();
  worker.kill('SIGKILL');
  await rig.reopened(concerned, killedAtMs, 5 * leaseMs);
  await rig.complete(ids);
  const { connections } = await rig.source.report();
  expect(connections.map(({ maxOpen }) => maxOpen)).toEqual(ids.map(() => 1));
  const last = rig.system.workers.find(({ pid }) => pid !== null);
  expect(await rig.ownedBy(last?.workerId ?? '', ids)).toEqual(ids);
}, 60_000);
