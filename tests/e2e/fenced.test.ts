import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { waitFor } from '../../local/measure.ts';
import type { WorkerProcess } from '../../local/worker-process.ts';
import { type DynamoProxy, startDynamoProxy } from '../support/dynamo-proxy.ts';
import { leaseMs, type Rig, startRig } from '../support/e2e.ts';

let rig: Rig;
let proxy: DynamoProxy;
/** The one that was frozen. */
let returned: WorkerProcess | undefined;
const ids = Array.from({ length: 20 }, (_, index) => `c-${index + 1}`);

beforeAll(async () => {
  rig = await startRig('fenced', { workers: 3, env: { WORKER_LEASE: 'on' } });
  proxy = await startDynamoProxy({ target: rig.system.dynamodbUrl });
  rig.keepSweeping();
  await rig.startAll(ids, 5);
}, 90_000);
afterAll(async () => {
  await rig?.stop();
  await proxy?.close();
}, 60_000);

const freshId = (worker: WorkerProcess, old: string | null) =>
  waitFor(`worker ${worker.number} under a fresh id`, 20_000, async () => {
    const { workerId } = worker;
    return workerId !== null && workerId !== old ? workerId : null;
  });

/** Everything is held, once, by workers that live. */
async function settled(): Promise<void> {
  await rig.allOpen(ids, 30_000);
  const alive = rig.system.workers.map(({ workerId }) => workerId);
  const owners = await Promise.all(ids.map(async (id) => (await rig.item(id)).leaseOwner ?? null));
  expect(alive).toEqual(expect.arrayContaining(owners));
}

describe('a worker that was frozen for longer than its lease', () => {
  test('lets go on waking, stores nothing under its old id, and comes back under a fresh one', async () => {
    const { worker, held: concerned } = await rig.holder(ids);
    const { workerId: old, pid } = worker;
    worker.kill('SIGSTOP');
    await waitFor('others to take over', 6 * leaseMs, async () => (await rig.ownedBy(old, ids)).length === 0 || null);
    // Two sockets each: the old ones are only frozen.
    for (const id of concerned) await rig.seenBecomes(id, 'has its new socket', ({ dials }) => dials === 2, 15_000);
    const wokenAtMs = Date.now();
    worker.kill('SIGCONT');
    for (const id of concerned) await rig.seenBecomes(id, 'has one socket', ({ open }) => open === 1);
    await freshId(worker, old);
    returned = worker;
    expect([worker.pid, await rig.workerRow(old ?? '')]).toEqual([
      pid,
      expect.objectContaining({ expiredAtMs: expect.any(Number) }),
    ]);
    await settled();
    for (const id of concerned) {
      await rig.flows(id);
      const late = (await rig.stored(id)).filter((one) => one.workerId === old && one.timestampMs >= wokenAtMs);
      expect(late).toEqual([]);
    }
  }, 90_000);

  test('takes part again', async () => {
    await rig.start('after-the-freeze');
    await Promise.all(rig.system.workers.filter((worker) => worker !== returned).map((worker) => worker.stop()));
    const all = [...ids, 'after-the-freeze'];
    await rig.allOpen(all, 30_000);
    expect(await rig.ownedBy(returned?.workerId ?? '', all)).toEqual(all);
    await rig.complete(ids);
  }, 60_000);
});

describe('a store that is silent to one worker for longer than its lease', () => {
  test('its sockets close in time, others take over, and it comes back in the same process', async () => {
    await Promise.all(ids.map((id) => rig.source.control({ id, rate: 5 })));
    const silenced = await rig.addWorker({ AWS_ENDPOINT_URL_DYNAMODB: proxy.url });
    await rig.addWorker();
    // The others give away what they hold, so that it holds something.
    await returned?.stop();
    await rig.allOpen(ids, 30_000);
    const { worker, held: concerned } = await rig.holder(ids, [silenced]);
    const { workerId: old, pid } = worker;
    const before = new Map(await Promise.all(concerned.map(async (id) => [id, await rig.seen(id)] as const)));
    const silentAtMs = Date.now();
    proxy.control({ silentForMs: leaseMs + 2_000 });
    for (const id of concerned) {
      const dials = before.get(id)?.dials ?? 0;
      await rig.seenBecomes(id, 'is held again', (seen) => seen.dials > dials && seen.open === 1, 6 * leaseMs);
      const { disconnects } = await rig.seen(id);
      const closed = disconnects.find(({ at }) => at >= silentAtMs);
      expect((closed?.at ?? Number.POSITIVE_INFINITY) - silentAtMs).toBeLessThan(leaseMs);
    }
    const fresh = await freshId(worker, old);
    expect([worker.pid, fresh === old]).toEqual([pid, false]);
    await waitFor('its old id buried, its fresh one alive', 10_000, async () => {
      const [dead, alive] = await Promise.all([rig.workerRow(old ?? ''), rig.workerRow(fresh)]);
      return (dead?.expiredAtMs !== undefined && alive !== undefined && alive.expiredAtMs === undefined) || null;
    });
    await settled();
    await rig.complete(ids);
    for (const id of concerned) expect((await rig.stored(id)).at(-1)?.workerId).not.toBe(old);
  }, 120_000);
});
