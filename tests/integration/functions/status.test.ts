import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { handler } from '../../../functions/status.ts';
import { systemClock } from '../../../shared/clock.ts';
import { type Connection, decideStart, decideStop, pkOf } from '../../../shared/connection.ts';
import { sqsQueue } from '../../../shared/queue.ts';
import { type ConnectionsTable, connectionsTable } from '../../../shared/tables/connections.ts';
import { type LeasesTable, leasesTable } from '../../../shared/tables/leases.ts';
import { workersTable } from '../../../shared/tables/workers.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { call, setEnvironment } from '../../support/lambda.ts';

let aws: TestAws;
let connections: ConnectionsTable;
let leases: LeasesTable;
const now = Date.now();

beforeAll(async () => {
  aws = await startAws({ namespace: 'fn-status' });
  setEnvironment(aws);
  connections = connectionsTable(aws.dynamodb, aws.tables.connections, { shards: 4, stoppedTtlMs: 60_000 });
  leases = leasesTable(aws.dynamodb, aws.tables.connections, { shards: 4 });
});

afterAll(() => aws?.stop());

const get = (resource: string, more: { path?: Record<string, string>; query?: Record<string, string> } = {}) =>
  call(handler, { method: 'GET', resource, ...more });
const show = (id: string) => get('/connections/{id}', { path: { id } });

async function start(id: string, wsUrl = 'wss://feed.example.com/'): Promise<void> {
  const decision = decideStart(undefined, { wsUrl, source: { name: 'plain' } });
  if (decision.outcome === 'changed') await connections.want(pkOf(id), decision.intent, undefined, now);
}

async function stop(id: string): Promise<void> {
  const seen = await connections.get(pkOf(id));
  const decision = decideStop(seen, {});
  if (decision.outcome === 'changed') await connections.want(pkOf(id), decision.intent, seen, now);
}

async function claim(id: string, owner: string, expiresAtMs = now + 600_000): Promise<Connection> {
  const claimed = await leases.acquire(pkOf(id), owner, expiresAtMs, now);
  if (claimed === 'refused') throw new Error(`${id} was not claimed`);
  return claimed;
}

async function fail(id: string): Promise<void> {
  const { pk, leaseEpoch: epoch, generation } = await claim(id, 'worker-f');
  const status = { status: 'FAILED', reason: 'HTTP 403', attempts: 1 } as const;
  await leases.release(
    { pk, owner: 'worker-f', epoch },
    { lastSeq: undefined, status, failedGeneration: generation },
    now,
  );
}

type Listed = { connections: { connection_id: string; status: string }[]; cursor: string | null };

async function pages(query: Record<string, string>): Promise<string[][]> {
  const all: string[][] = [];
  let cursor: string | null = null;
  do {
    const { status, body } = await get('/connections', { query: cursor === null ? query : { ...query, cursor } });
    expect(status).toBe(200);
    const listed = body as Listed;
    all.push(listed.connections.map(({ connection_id }) => connection_id));
    cursor = listed.cursor;
  } while (cursor !== null);
  return all;
}

describe('GET /connections/{id}', () => {
  test('shows all that a person wants to know, and no token', async () => {
    await start('one/id', 'wss://feed.example.com/s?token=secret&from={last_seq}&flag');
    const { leaseEpoch } = await claim('one/id', 'worker-1');
    expect(await show('one%2Fid')).toMatchObject({
      status: 200,
      body: {
        connection_id: 'one/id',
        desired_state: 'STARTED',
        status: 'CONNECTING',
        owner: 'worker-1',
        lease_runs_until: new Date(now + 600_000).toISOString(),
        epoch: leaseEpoch,
        generation: 1,
        last_seq: null,
        ws_url: 'wss://feed.example.com/s?token=***&from={last_seq}&***',
        source: { name: 'plain' },
        created_at: new Date(now).toISOString(),
        waiting_for_worker: false,
      },
    });
  });

  test.each([
    ['100%', '100%25'],
    ['100%', '100%'],
    ['a%41', 'a%2541'],
    ['a%41', 'a%41'],
  ])('finds %s as %s, whoever decoded it', async (id, sent) => {
    await start(id);
    expect(await show(sent)).toMatchObject({ status: 200, body: { connection_id: id } });
  });

  test('an id may be 256 characters that all need encoding', async () => {
    const id = '/'.repeat(256);
    await start(id);
    expect(await show(encodeURIComponent(id))).toMatchObject({ status: 200, body: { connection_id: id } });
  });

  test('says who lost it', async () => {
    await start('lost');
    await claim('lost', 'worker-dead', now - 1000);
    const body = { owner: null, lost_by: 'worker-dead', waiting_for_worker: true };
    expect(await show('lost')).toMatchObject({ status: 200, body });
  });

  test('an unknown id is a 404, an impossible one a 400', async () => {
    expect(await show('unknown')).toMatchObject({ status: 404, body: { error: { code: 'unknown_connection' } } });
    for (const id of ['a b', 'x'.repeat(2048), '\u0000']) {
      expect(await show(id)).toMatchObject({ status: 400, body: { error: { field: 'id' } } });
    }
  });

  test('an item that somebody broke by hand is named', async () => {
    const Item = { pk: { S: 'CONN#broken' }, desired_state: { S: 'RUNNING' }, ws_url: { S: 'wss://a.example.com' } };
    await aws.dynamodb.send(new PutItemCommand({ TableName: aws.tables.connections, Item }));
    const { status, body } = await show('broken');
    expect(status).toBe(500);
    expect(body['error']).toMatchObject({
      code: 'broken_item',
      message: expect.stringMatching(/CONN#broken.*desired_state/),
    });
  });
});

describe('GET /connections', () => {
  const started = Array.from({ length: 23 }, (_, i) => `list-${i}`);
  const stopped = ['list-stopped-1', 'list-stopped-2'];
  const failed = ['list-failed-1', 'list-failed-2', 'list-failed-3'];
  const owned = Array.from({ length: 7 }, (_, i) => `list-owned-${i}`);

  beforeAll(async () => {
    await Promise.all([...started, ...stopped, ...failed, ...owned].map((id) => start(id)));
    await Promise.all([...stopped.map(stop), ...failed.map(fail), ...owned.map((id) => claim(id, 'worker-list'))]);
  });

  const ofTest = (ids: string[]) => ids.filter((id) => id.startsWith('list-')).sort();

  test.each([
    ['STARTED', [...started, ...owned]],
    ['STOPPED', stopped],
    ['FAILED', failed],
  ])('state=%s shows all of them once, every page but the last full', async (state, expected) => {
    const found = await pages({ state, limit: '4' });
    expect(ofTest(found.flat())).toEqual([...expected].sort());
    expect(found.slice(0, -1).every((page) => page.length === 4)).toBe(true);
  });

  test('without a filter shows all', async () => {
    const found = await pages({ limit: '10' });
    expect(ofTest(found.flat())).toEqual([...started, ...stopped, ...failed, ...owned].sort());
    expect(found.slice(0, -1).every((page) => page.length === 10)).toBe(true);
  });

  test('by owner', async () => {
    expect((await pages({ owner: 'worker-list', limit: '3' })).map((page) => page.length)).toEqual([3, 3, 1]);
    expect(await pages({ owner: 'nobody' })).toEqual([[]]);
  });

  test('one broken item does not hide the others', async () => {
    const Item = {
      pk: { S: 'CONN#list-broken' },
      desired_state: { S: 'STARTED' },
      desired_shard: { S: 'STARTED#0' },
      lease_expires_at_ms: { N: '9999999999999' },
    };
    await aws.dynamodb.send(new PutItemCommand({ TableName: aws.tables.connections, Item }));
    const { body } = await get('/connections', { query: { state: 'STARTED', limit: '500' } });
    expect(body['broken']).toEqual([{ connection_id: 'list-broken', message: expect.stringContaining('ws_url') }]);
    expect(ofTest((body as Listed).connections.map(({ connection_id }) => connection_id))).toHaveLength(30);
  });

  test('refuses what it does not understand, each with its field', async () => {
    const { body } = await get('/connections', { query: { state: 'STARTED', limit: '1' } });
    const { cursor } = body as Listed;
    if (cursor === null) throw new Error('there is more than one');
    const forged = (place: unknown) => Buffer.from(JSON.stringify(place)).toString('base64url');
    const from = { pk: { S: 'CONN#x' } };
    const cases: [Record<string, string>, string][] = [
      [{ state: 'OPEN' }, 'state'],
      [{ limit: '0' }, 'limit'],
      [{ limit: '501' }, 'limit'],
      [{ limit: 'ten' }, 'limit'],
      [{ stat: 'STARTED' }, 'stat'],
      [{ state: 'STARTED', owner: 'worker-1' }, 'owner'],
      [{ cursor: 'nonsense' }, 'cursor'],
      [{ state: 'STOPPED', cursor }, 'cursor'],
      [{ state: 'STARTED', cursor: forged({ state: 'all', bucket: 'STARTED', shard: 0 }) }, 'cursor'],
      [{ owner: 'worker-1', cursor }, 'cursor'],
      [{ cursor: forged({ state: 'all', bucket: 'STARTED', shard: 99 }) }, 'cursor'],
      [{ cursor: forged({ state: 'all', bucket: 'STARTED', shard: 0, from }) }, 'cursor'],
      [{ owner: 'worker-1', cursor: forged({ owner: 'worker-1', from }) }, 'cursor'],
    ];
    for (const [query, field] of cases) {
      expect([query, await get('/connections', { query })]).toMatchObject([
        query,
        { status: 400, body: { error: { field } } },
      ]);
    }
  });
});

describe('GET /fleet', () => {
  test('workers, what they hold, and what nobody holds', async () => {
    const workers = workersTable(aws.dynamodb, aws.tables.workers);
    const report = { capacity: 10, draining: false, revision: 'r1', taskArn: undefined, startedAtMs: now - 60_000 };
    await workers.register({ ...report, workerId: 'w-alive', held: 4, leaseExpiresAtMs: now + 600_000 });
    await workers.register({ ...report, workerId: 'w-silent', held: 9, leaseExpiresAtMs: now - 5_000 });
    await workers.register({ ...report, workerId: 'w-gone', held: 0, leaseExpiresAtMs: now });
    await workers.expire('w-gone', undefined, now - 1);
    await workers.register({ ...report, workerId: 'w-forgotten', held: 0, leaseExpiresAtMs: now - 7_200_000 });
    const queue = sqsQueue(aws.sqs, { queueUrl: aws.queueUrl, longPollSeconds: 1, clock: systemClock });
    await queue.send({ pk: 'CONN#list-1' });
    const { status, body } = await get('/fleet');
    expect(status).toBe(200);
    expect(body).toMatchObject({
      workers: [
        {
          worker_id: 'w-alive',
          state: 'alive',
          held: 4,
          capacity: 10,
          percent: 40,
          draining: false,
          revision: 'r1',
          started_at: new Date(now - 60_000).toISOString(),
          last_heartbeat: new Date(now + 580_000).toISOString(),
        },
        { worker_id: 'w-silent', state: 'silent' },
        { worker_id: 'w-gone', state: 'gone' },
      ],
      totals: { workers: 1, held: 4, capacity: 10, percent: 40 },
      failed: 3,
      queue: { wake_ups: 1 },
      waiting: { count: 0, hint: null },
    });
    const orphans = body['orphans'] as { count: number; oldest_age_seconds: number; connection_ids: string[] };
    expect(orphans.count).toBeGreaterThan(23);
    expect(orphans.connection_ids).toHaveLength(20);
    expect(orphans.connection_ids.filter((id) => id.startsWith('CONN#'))).toEqual([]);
  });

  test('orphans that no worker has room for are waiting, with a hint', async () => {
    const workers = workersTable(aws.dynamodb, aws.tables.workers);
    const report = {
      capacity: 10,
      revision: 'r1',
      taskArn: undefined,
      startedAtMs: now,
      leaseExpiresAtMs: now + 601_000,
    };
    await workers.register({ ...report, workerId: 'w-alive', held: 10, draining: false });
    await workers.register({ ...report, workerId: 'w-draining', held: 1, draining: true });
    const { body } = await get('/fleet');
    expect(body['waiting']).toMatchObject({
      count: expect.any(Number),
      hint: expect.stringMatching(/full \(10 of 10\)/),
    });
    await workers.renew({ ...report, workerId: 'w-alive', held: 10, draining: true, leaseExpiresAtMs: now + 602_000 });
    expect((await get('/fleet')).body['waiting']).toMatchObject({ hint: expect.stringMatching(/no worker is there/) });
  });
});
