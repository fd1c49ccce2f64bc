import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { sweep, sweepThrough } from '../../../functions/sweep.ts';
import { idOf, pkOf } from '../../../shared/connection.ts';
import type { Queue } from '../../../shared/queue.ts';
import type { ConnectionsTable } from '../../../shared/tables/connections.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { type Orphanage, orphanage } from '../../support/orphanage.ts';

const all = { dryRun: false, scan: true };
let aws: TestAws;
let home: Orphanage;

beforeAll(async () => {
  aws = await startAws({ namespace: 'fn-sweep' });
  home = orphanage(aws);
});

afterAll(() => aws?.stop());
beforeEach(() => home.empty());

describe('a sweep', () => {
  test('wakes up exactly what is wanted, due and owned by nobody', async () => {
    await Promise.all(['free', 'dead', 'live', 'parked', 'due', 'stopped'].map((id) => home.start(`a-${id}`)));
    await home.claim('a-dead', 'worker-1', -10);
    await home.claim('a-live', 'worker-2');
    await home.park('a-parked', 60_000);
    await home.park('a-due', -10);
    await home.stop('a-stopped');
    expect(await sweep(home.parts().parts, all)).toMatchObject({ orphans: 3, sent: 3, skipped: 0, why: null });
    expect(await home.wakeUps()).toEqual(['a-dead', 'a-due', 'a-free']);
  });

  test('goes through every page of every part of the index', async () => {
    const ids = Array.from({ length: 40 }, (_, i) => `page-${i}`);
    await Promise.all(ids.map((id) => home.start(id)));
    const inBucket: ConnectionsTable['inBucket'] = (bucket, shard, query) =>
      home.connections.inBucket(bucket, shard, { ...query, limit: 3 });
    const swept = await sweep(home.parts({ connections: { ...home.connections, inBucket } }).parts, all);
    expect(swept).toMatchObject({ orphans: 40, sent: 40 });
    expect(await home.wakeUps()).toEqual(ids.sort());
  });

  test('lays no more wake-ups into the queue than there are orphans', async () => {
    await Promise.all(['b-1', 'b-2', 'b-3'].map((id) => home.start(id)));
    expect(await sweep(home.parts().parts, all)).toMatchObject({ sent: 3 });
    expect(await sweep(home.parts().parts, all)).toMatchObject({
      sent: 0,
      skipped: 3,
      why: expect.stringContaining('3'),
    });
    await home.start('b-4');
    expect(await sweep(home.parts().parts, all)).toMatchObject({ orphans: 4, sent: 1, skipped: 3 });
    expect(await home.queue.depth()).toBe(4);
  });

  test('begins anywhere when the queue takes only some, so that each orphan has its turn', async () => {
    const ids = ['c-1', 'c-2', 'c-3', 'c-4'];
    await Promise.all(ids.map((id) => home.start(id)));
    const sent = new Set<string>();
    const full = { depth: async () => 3, send: async ({ pk }: { pk: string }) => void sent.add(idOf(pk)) };
    for (const random of [0, 0.25, 0.5, 0.75])
      await sweep(home.parts({ queue: full, random: () => random }).parts, all);
    expect([...sent].sort()).toEqual(ids);
  });

  test('dry: says what it would do, and does nothing', async () => {
    await home.start('d-1');
    const { parts: some, published } = home.parts();
    expect(await sweep(some, { ...all, dryRun: true })).toMatchObject({
      dryRun: true,
      orphans: 1,
      sent: 0,
      connectionIds: ['d-1'],
    });
    expect(await home.queue.depth()).toBe(0);
    expect(published).toEqual([]);
  });

  test('looks at the items, since the index lags', async () => {
    await home.start('e-1');
    await home.claim('e-1', 'worker-1');
    const inBucket = (async (_bucket: unknown, shard: number) => ({
      rows:
        shard === 0
          ? [
              { pk: pkOf('e-1'), leaseExpiresAtMs: 0 },
              { pk: pkOf('e-deleted'), leaseExpiresAtMs: 0 },
            ]
          : [],
      next: undefined,
    })) as ConnectionsTable['inBucket'];
    expect(await sweep(home.parts({ connections: { ...home.connections, inBucket } }).parts, all)).toMatchObject({
      orphans: 0,
    });
  });

  test('goes on past an item that somebody broke, and names it', async () => {
    await home.start('f-1');
    const Item = {
      pk: { S: 'CONN#f-broken' },
      desired_shard: { S: 'STARTED#1' },
      lease_expires_at_ms: { N: '0' },
    };
    const key = { TableName: aws.tables.connections, Item };
    await aws.dynamodb.send(new PutItemCommand(key));
    const swept = await sweep(home.parts().parts, all);
    expect(swept).toMatchObject({ orphans: 1, sent: 1, broken: [{ connectionId: 'f-broken' }] });
    await aws.dynamodb.send(new PutItemCommand({ ...key, Item: { pk: Item.pk, desired_shard: { S: 'gone' } } }));
  });
});

describe('metrics', () => {
  const timing = { everyMs: 1, sweepMs: 1, marginMs: 0, remainingMs: () => 60_000 };

  test('count the sweeps, the orphans and their age, also when there are none', async () => {
    const { parts: some, published } = home.parts();
    await sweepThrough(some, timing);
    await home.start('g-1', Date.now() - 90_000);
    await home.start('g-2', Date.now() - 90_000);
    await home.claim('g-2', 'worker-1', -30_000);
    await sweepThrough(some, timing);
    const none = { Sweeps: 1, Orphans: 0, OldestOrphanAgeSeconds: 0, WakeUpsSent: 0, ReconcileErrors: 0 };
    expect(published).toEqual([
      none,
      { ...none, Orphans: 2, OldestOrphanAgeSeconds: expect.any(Number), WakeUpsSent: 2 },
    ]);
    expect(published[1]?.OldestOrphanAgeSeconds).toBeGreaterThanOrEqual(90);
    expect(published[1]?.OldestOrphanAgeSeconds).toBeLessThan(100);
  });

  test('a fault in one sweep is counted, and the next sweep goes on', async () => {
    await home.start('h-1');
    let times = 0;
    const depth = () => (times++ === 0 ? Promise.reject(new Error('away')) : home.queue.depth());
    const { parts: some, published } = home.parts({ queue: { ...home.queue, depth } });
    await expect(sweepThrough(some, { ...timing, everyMs: 2_000, sweepMs: 1_900 })).resolves.toEqual({
      sweeps: 2,
      failed: 1,
    });
    expect(published).toMatchObject([
      { ReconcileErrors: 1, Orphans: 1 },
      { ReconcileErrors: 0, Orphans: 1, WakeUpsSent: 1 },
    ]);
  });

  test('wake-ups that the queue refuses are counted, the others are sent', async () => {
    await Promise.all(['i-1', 'i-2', 'i-3'].map((id) => home.start(id)));
    const send: Queue['send'] = (wakeUp) =>
      wakeUp.pk === pkOf('i-2') ? Promise.reject(new Error('refused')) : home.queue.send(wakeUp);
    const { parts: some, published } = home.parts({ queue: { ...home.queue, send } });
    await sweepThrough(some, timing);
    expect(published).toMatchObject([{ WakeUpsSent: 2, QueueFaults: 1, ReconcileErrors: 1 }]);
    expect(await home.wakeUps()).toEqual(['i-1', 'i-3']);
  });
});
