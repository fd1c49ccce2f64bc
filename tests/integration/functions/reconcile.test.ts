import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { handler } from '../../../functions/reconcile.ts';
import { type SweepParts, sweep, sweepThrough } from '../../../functions/sweep.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { type Connection, decideStart, decideStop, idOf, pkOf } from '../../../shared/connection.ts';
import { createLog } from '../../../shared/log.ts';
import { createMetrics, type MetricName } from '../../../shared/metrics.ts';
import { type Queue, sqsQueue } from '../../../shared/queue.ts';
import { type ConnectionsTable, connectionsTable } from '../../../shared/tables/connections.ts';
import { type LeasesTable, leasesTable } from '../../../shared/tables/leases.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { context, scheduledEvent, setEnvironment } from '../../support/lambda.ts';

const shards = 4;
const log = createLog('silent', {});
let aws: TestAws;
let connections: ConnectionsTable;
let leases: LeasesTable;
let queue: Queue;

beforeAll(async () => {
  aws = await startAws({ namespace: 'fn-reconcile' });
  setEnvironment(aws, { RECONCILE_EVERY: '0.9', SWEEP_EVERY: '0.3' });
  connections = connectionsTable(aws.dynamodb, aws.tables.connections, { shards, stoppedTtlMs: 60_000 });
  leases = leasesTable(aws.dynamodb, aws.tables.connections, { shards });
  queue = sqsQueue(aws.sqs, { queueUrl: aws.queueUrl, longPollSeconds: 1, clock: systemClock });
});

afterAll(() => aws?.stop());

// Nothing is left over from the test before: all that is wanted is stopped, and the queue is empty.
beforeEach(async () => {
  for (let shard = 0; shard < shards; shard++) {
    for (const { pk } of (await connections.inBucket('STARTED', shard)).rows) await stop(idOf(pk));
  }
  await wakeUps();
});

async function start(id: string, at = Date.now()): Promise<void> {
  const decision = decideStart(undefined, { wsUrl: 'wss://feed.example.com/', source: { name: 'plain' } });
  if (decision.outcome === 'changed') await connections.want(pkOf(id), decision.intent, undefined, at);
}

async function stop(id: string): Promise<void> {
  const seen = await connections.get(pkOf(id));
  const decision = decideStop(seen, {});
  if (decision.outcome === 'changed') await connections.want(pkOf(id), decision.intent, seen, Date.now());
}

async function claim(id: string, owner: string, forMs = 600_000): Promise<Connection> {
  const claimed = await leases.acquire(pkOf(id), owner, Date.now() + forMs, Date.now());
  if (claimed === 'refused') throw new Error(`${id} was not claimed`);
  return claimed;
}

/** Its next try is due in `forMs`. */
async function park(id: string, forMs: number): Promise<void> {
  const { pk, leaseEpoch: epoch } = await claim(id, 'worker-p');
  const status = { status: 'RETRYING', reason: 'refused', attempts: 10 } as const;
  const given = { lastSeq: undefined, status, notBeforeMs: Date.now() + forMs };
  await leases.release({ pk, owner: 'worker-p', epoch }, given, Date.now());
}

async function wakeUps(): Promise<string[]> {
  const taken: string[] = [];
  for (;;) {
    const request = { QueueUrl: aws.queueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 0 };
    const { Messages: messages = [] } = await aws.sqs.send(new ReceiveMessageCommand(request));
    if (messages.length === 0) return taken.sort();
    taken.push(...messages.map(({ Body: body }) => idOf((JSON.parse(body ?? '') as { pk: string }).pk)));
  }
}

function parts(change: Partial<SweepParts> = {}) {
  const published: Partial<Record<MetricName, number>>[] = [];
  const metrics = createMetrics(async (data) => {
    published.push(Object.fromEntries(data.map(({ name, value }) => [name, value])));
  }, log);
  return {
    published,
    parts: { connections, queue, shards, clock: systemClock, metrics, log, random: () => 0, ...change },
  };
}

describe('a sweep', () => {
  test('wakes up exactly what is wanted, due and owned by nobody', async () => {
    await Promise.all(['free', 'dead', 'live', 'parked', 'due', 'stopped'].map((id) => start(`a-${id}`)));
    await claim('a-dead', 'worker-1', -10);
    await claim('a-live', 'worker-2');
    await park('a-parked', 60_000);
    await park('a-due', -10);
    await stop('a-stopped');
    expect(await sweep(parts().parts, false)).toMatchObject({ orphans: 3, sent: 3, skipped: 0, why: null });
    expect(await wakeUps()).toEqual(['a-dead', 'a-due', 'a-free']);
  });

  test('goes through every page of every part of the index', async () => {
    const ids = Array.from({ length: 40 }, (_, i) => `page-${i}`);
    await Promise.all(ids.map((id) => start(id)));
    const inBucket: ConnectionsTable['inBucket'] = (bucket, shard, query) =>
      connections.inBucket(bucket, shard, { ...query, limit: 3 });
    const swept = await sweep(parts({ connections: { ...connections, inBucket } }).parts, false);
    expect(swept).toMatchObject({ orphans: 40, sent: 40 });
    expect(await wakeUps()).toEqual(ids.sort());
  });

  test('lays no more wake-ups into the queue than there are orphans', async () => {
    await Promise.all(['b-1', 'b-2', 'b-3'].map((id) => start(id)));
    expect(await sweep(parts().parts, false)).toMatchObject({ sent: 3 });
    expect(await sweep(parts().parts, false)).toMatchObject({
      sent: 0,
      skipped: 3,
      why: expect.stringContaining('3 wake-ups'),
    });
    await start('b-4');
    expect(await sweep(parts().parts, false)).toMatchObject({ orphans: 4, sent: 1, skipped: 3 });
    expect(await queue.depth()).toBe(4);
  });

  test('begins anywhere when the queue takes only some, so that each orphan has its turn', async () => {
    const ids = ['c-1', 'c-2', 'c-3', 'c-4'];
    await Promise.all(ids.map((id) => start(id)));
    const sent = new Set<string>();
    const full = { depth: async () => 3, send: async ({ pk }: { pk: string }) => void sent.add(idOf(pk)) };
    for (const random of [0, 0.25, 0.5, 0.75]) await sweep(parts({ queue: full, random: () => random }).parts, false);
    expect([...sent].sort()).toEqual(ids);
  });

  test('dry: says what it would do, and does nothing', async () => {
    await start('d-1');
    const { parts: some, published } = parts();
    expect(await sweep(some, true)).toMatchObject({ dryRun: true, orphans: 1, sent: 0, connectionIds: ['d-1'] });
    expect(await queue.depth()).toBe(0);
    expect(published).toEqual([]);
  });

  test('looks at the items, since the index lags', async () => {
    await start('e-1');
    await claim('e-1', 'worker-1');
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
    expect(await sweep(parts({ connections: { ...connections, inBucket } }).parts, false)).toMatchObject({
      orphans: 0,
    });
  });

  test('goes on past an item that somebody broke, and names it', async () => {
    await start('f-1');
    const Item = {
      pk: { S: 'CONN#f-broken' },
      desired_shard: { S: 'STARTED#1' },
      lease_expires_at_ms: { N: '0' },
    };
    const key = { TableName: aws.tables.connections, Item };
    await aws.dynamodb.send(new PutItemCommand(key));
    const swept = await sweep(parts().parts, false);
    expect(swept).toMatchObject({ orphans: 1, sent: 1, broken: [{ connectionId: 'f-broken' }] });
    await aws.dynamodb.send(new PutItemCommand({ ...key, Item: { pk: Item.pk, desired_shard: { S: 'gone' } } }));
  });
});

describe('metrics', () => {
  const timing = { everyMs: 1, sweepMs: 1, marginMs: 0, remainingMs: () => 60_000 };

  test('count the sweeps, the orphans and their age, also when there are none', async () => {
    const { parts: some, published } = parts();
    await sweepThrough(some, timing);
    await start('g-1', Date.now() - 90_000);
    await start('g-2', Date.now() - 90_000);
    await claim('g-2', 'worker-1', -30_000);
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
    await start('h-1');
    let times = 0;
    const depth = () => (times++ === 0 ? Promise.reject(new Error('away')) : queue.depth());
    const { parts: some, published } = parts({ queue: { ...queue, depth } });
    await expect(sweepThrough(some, { ...timing, everyMs: 60, sweepMs: 50 })).resolves.toEqual({
      sweeps: 2,
      failed: 1,
    });
    expect(published).toMatchObject([
      { ReconcileErrors: 1, Orphans: 1 },
      { ReconcileErrors: 0, Orphans: 1, WakeUpsSent: 1 },
    ]);
  });

  test('wake-ups that the queue refuses are counted, the others are sent', async () => {
    await Promise.all(['i-1', 'i-2', 'i-3'].map((id) => start(id)));
    const send: Queue['send'] = (wakeUp) =>
      wakeUp.pk === pkOf('i-2') ? Promise.reject(new Error('refused')) : queue.send(wakeUp);
    const { parts: some, published } = parts({ queue: { ...queue, send } });
    await sweepThrough(some, timing);
    expect(published).toMatchObject([{ WakeUpsSent: 2, QueueFaults: 1, ReconcileErrors: 1 }]);
    expect(await wakeUps()).toEqual(['i-1', 'i-3']);
  });
});

describe('the times of the sweeps', () => {
  /** Time goes on only by sleeping, and by what a sweep takes. */
  function fakeTime(sweepTakesMs: number[]) {
    let now = 0;
    const startedAt: number[] = [];
    const clock: Clock = { ...systemClock, monotonic: () => now, sleep: async (ms) => void (now += ms) };
    const empty = { rows: [], next: undefined };
    const inBucket: ConnectionsTable['inBucket'] = async () => {
      startedAt.push(now);
      now += sweepTakesMs[startedAt.length - 1] ?? 0;
      return empty;
    };
    return {
      startedAt,
      now: () => now,
      parts: parts({ clock, shards: 1, connections: { ...connections, inBucket } }).parts,
    };
  }

  test.each<[string, number[], number, number[]]>([
    ['every five seconds within the minute', [], 75_000, [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55]],
    [
      'a long one pushes the next back, and they do not pile up',
      [0, 12_000],
      75_000,
      [0, 5, 17, 22, 27, 32, 37, 42, 47, 52, 57],
    ],
    ['never past the time that Lambda gives', [], 31_000, [0, 5, 10, 15, 20]],
    ['not at all without time', [], 9_000, []],
  ])('%s', async (_name, takesMs, lambdaMs, seconds) => {
    const time = fakeTime(takesMs);
    const remainingMs = () => lambdaMs - time.now();
    await sweepThrough(time.parts, { everyMs: 60_000, sweepMs: 5_000, marginMs: 10_000, remainingMs });
    expect(time.startedAt.map((ms) => ms / 1000)).toEqual(seconds);
  });
});

describe('as Lambda calls it', () => {
  const invoke = (event: unknown) => handler(event, context(75_000));

  test('by schedule, several times within its minute', async () => {
    await start('k-1');
    expect(await invoke(scheduledEvent)).toEqual({ sweeps: 3, failed: 0 });
    expect(await wakeUps()).toEqual(['k-1']);
  });

  test('two at once send a wake-up too many at worst', async () => {
    await Promise.all(['l-1', 'l-2'].map((id) => start(id)));
    await Promise.all([invoke({}), invoke({})]);
    const woken = await wakeUps();
    expect([...new Set(woken)]).toEqual(['l-1', 'l-2']);
    expect(woken.length).toBeLessThanOrEqual(4);
  });

  test('by hand: one sweep, with or without doing it', async () => {
    await start('m-1');
    expect(await invoke({ dryRun: true })).toMatchObject({ dryRun: true, orphans: 1, sent: 0, connectionIds: ['m-1'] });
    expect(await invoke(null)).toMatchObject({ dryRun: false, orphans: 1, sent: 1 });
    expect(await wakeUps()).toEqual(['m-1']);
  });

  test('by hand: one connection, and why', async () => {
    await Promise.all(['free', 'dead', 'live', 'parked', 'stopped'].map((id) => start(`n-${id}`)));
    await claim('n-dead', 'worker-1', -10);
    await claim('n-live', 'worker-2');
    await park('n-parked', 60_000);
    await stop('n-stopped');
    const look = (id: string, more = {}) => invoke({ connectionId: `n-${id}`, ...more });
    expect(await look('free', { dryRun: true })).toMatchObject({ state: 'orphan', woken: false });
    expect(await wakeUps()).toEqual([]);
    expect(await look('free')).toMatchObject({ state: 'orphan', woken: true, why: 'no worker has taken it' });
    expect(await look('dead')).toMatchObject({
      state: 'orphan',
      woken: true,
      why: expect.stringContaining('worker-1'),
    });
    expect(await look('live')).toMatchObject({
      state: 'owned',
      woken: false,
      why: expect.stringContaining('worker-2'),
    });
    expect(await look('parked')).toMatchObject({ state: 'waiting', woken: false });
    expect(await look('stopped')).toMatchObject({ state: 'stopped', woken: false });
    expect(await look('unknown')).toMatchObject({ state: 'unknown', woken: false });
    expect(await wakeUps()).toEqual(['n-dead', 'n-free']);
  });

  test('by hand: what one worker left behind', async () => {
    await Promise.all(['o-1', 'o-2', 'o-3', 'o-4'].map((id) => start(id)));
    await claim('o-1', 'worker-left', -10);
    await claim('o-2', 'worker-left');
    await claim('o-3', 'worker-left', -10);
    await stop('o-3');
    const expected = { workerId: 'worker-left', owned: 3, stillLeased: 1, orphans: 1, connectionIds: ['o-1'] };
    expect(await invoke({ workerId: 'worker-left', dryRun: true })).toMatchObject({ ...expected, sent: 0 });
    expect(await invoke({ workerId: 'worker-left' })).toMatchObject({ ...expected, sent: 1 });
    expect(await wakeUps()).toEqual(['o-1']);
  });

  test.each<[unknown, RegExp]>([
    [{ dryrun: true }, /dryrun is not a field/],
    [{ dryRun: 'true' }, /dryRun must be a boolean, not a string/],
    [{ connectionId: 'a', workerId: 'b' }, /only one at a time/],
    ['dryRun', /must be an object/],
    [{ source: 'aws.ecs' }, /source is not a field/],
  ])('by hand: %j fails with words', async (payload, words) => {
    await expect(invoke(payload)).rejects.toThrow(words);
  });
});

test('a wrong configuration is a failed call that says what is wrong', async () => {
  const { SWEEP_EVERY: sweepEvery } = process.env;
  jest.resetModules();
  Object.assign(process.env, { SWEEP_EVERY: '90' });
  try {
    const fresh = await import('../../../functions/reconcile.ts');
    await expect(fresh.handler({}, context())).rejects.toThrow(/SWEEP_EVERY \(90\) must not/);
  } finally {
    Object.assign(process.env, { SWEEP_EVERY: sweepEvery });
  }
});
