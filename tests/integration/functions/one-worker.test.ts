import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { oneWorker } from '../../../functions/one-worker.ts';
import type { SweepParts } from '../../../functions/sweep.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { type Orphanage, orphanage } from '../../support/orphanage.ts';

const skewMs = 1_000;
let aws: TestAws;
let home: Orphanage;

beforeAll(async () => {
  aws = await startAws({ namespace: 'fn-one-worker' });
  home = orphanage(aws);
});

afterAll(() => aws?.stop());
beforeEach(() => home.empty());

const ask = (workerId: string, { dryRun = false, ...change }: Partial<SweepParts> & { dryRun?: boolean } = {}) => {
  const { parts } = home.parts({ workerLease: true, ...change });
  return oneWorker({ ...parts, connections: home.connections, workers: home.workers }, workerId, dryRun);
};

/** @param forMs how long its lease still runs; undefined: it has no row */
async function worker(workerId: string, forMs: number | undefined): Promise<void> {
  await Promise.all(['1', '2', '3'].map((n) => home.start(`${workerId}-${n}`)));
  await Promise.all(['1', '2', '3'].map((n) => home.claim(`${workerId}-${n}`, workerId)));
  await home.stop(`${workerId}-3`);
  if (forMs === undefined) return;
  const report = { held: 3, capacity: 9, draining: false, revision: 'r1', taskArn: undefined, startedAtMs: 0 };
  await home.workers.register({ ...report, workerId, leaseExpiresAtMs: Date.now() + forMs });
}

const left = (workerId: string) => [`${workerId}-1`, `${workerId}-2`];
const tombstone = async (id: string) => (await home.workers.get(id))?.expiredAtMs;

test('alive: nothing of it is touched', async () => {
  await worker('alive', 20_000);
  expect(await ask('alive')).toMatchObject({ worker: 'alive', owned: 3, stillLeased: 3, orphans: 0, sent: 0 });
  expect(await tombstone('alive')).toBeUndefined();
});

test('overdue by less than clocks may differ: alive still', async () => {
  await worker('barely', -skewMs + 500);
  expect(await ask('barely')).toMatchObject({ worker: 'alive', orphans: 0 });
  expect(await tombstone('barely')).toBeUndefined();
});

test('overdue: buried, and what it left is woken up', async () => {
  await worker('overdue', -skewMs - 1);
  expect(await ask('overdue', { dryRun: true })).toMatchObject({
    worker: 'dead',
    owned: 3,
    orphans: 2,
    sent: 0,
    connectionIds: left('overdue'),
  });
  expect(await tombstone('overdue')).toBeUndefined();
  expect(await ask('overdue')).toMatchObject({ worker: 'dead', owned: 3, stillLeased: 0, orphans: 2, sent: 2 });
  expect(await tombstone('overdue')).toEqual(expect.any(Number));
  expect(await home.wakeUps()).toEqual(left('overdue'));
});

test('it renews in that very moment: alive', async () => {
  await worker('renewing', -skewMs - 1);
  const { parts } = home.parts({ workerLease: true });
  const workers = { ...home.workers, expire: async () => 'refused' as const };
  const asked = await oneWorker({ ...parts, connections: home.connections, workers }, 'renewing', false);
  expect(asked).toMatchObject({ worker: 'alive', about: 'it has just renewed', orphans: 0, sent: 0 });
});

test('dead: what it left is woken up', async () => {
  await worker('dead', 20_000);
  await home.workers.expire('dead', undefined, Date.now());
  expect(await ask('dead')).toMatchObject({ worker: 'dead', orphans: 2, sent: 2, connectionIds: left('dead') });
  expect(await home.wakeUps()).toEqual(left('dead'));
});

test('its row is missing: put back as if it had just renewed, so that it is overdue in one lease unless it lives', async () => {
  await worker('rowless', undefined);
  expect(await ask('rowless', { dryRun: true })).toMatchObject({ worker: 'unknown', owned: 3, orphans: 0 });
  expect(await home.workers.get('rowless')).toBeUndefined();
  const beforeMs = Date.now();
  expect(await ask('rowless')).toMatchObject({ worker: 'unknown', owned: 3, stillLeased: 3, orphans: 0, sent: 0 });
  const row = await home.workers.get('rowless');
  expect(row?.leaseExpiresAtMs).toBeGreaterThanOrEqual(beforeMs + 20_000);
  expect(row?.expiredAtMs).toBeUndefined();
  // If it lives, it renews as ever.
  const report = { held: 3, capacity: 9, draining: false, revision: 'r1', taskArn: undefined, startedAtMs: 0 };
  const renewed = { ...report, workerId: 'rowless', leaseExpiresAtMs: Date.now() + 25_000 };
  expect(await home.workers.renew(renewed)).toBe('written');
});

test('an id that never was: nothing is made', async () => {
  expect(await ask('nobody')).toMatchObject({ worker: 'unknown', about: 'no worker has this id', owned: 0, sent: 0 });
  expect(await home.workers.get('nobody')).toBeUndefined();
});

test('without the worker lease only the leases on connections count, and no row is made or buried', async () => {
  await worker('published', -60_000);
  await home.start('published-4');
  await home.claim('published-4', 'published', -10);
  const asked = await ask('published', { workerLease: false });
  expect(asked).toMatchObject({
    worker: 'alive',
    owned: 4,
    stillLeased: 3,
    orphans: 1,
    connectionIds: ['published-4'],
  });
  expect(await tombstone('published')).toBeUndefined();
});

test('without the worker lease a tombstone frees nothing', async () => {
  await worker('published-dead', 20_000);
  await home.workers.expire('published-dead', undefined, Date.now());
  expect(await ask('published-dead', { workerLease: false })).toMatchObject({ stillLeased: 3, orphans: 0, sent: 0 });
});
