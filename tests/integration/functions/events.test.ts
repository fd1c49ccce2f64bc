import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { changeDesiredState, type DesiredStateParts } from '../../../functions/desired-state.ts';
import { handler } from '../../../functions/events.ts';
import type { Call } from '../../../functions/http.ts';
import { systemClock } from '../../../shared/clock.ts';
import { pkOf } from '../../../shared/connection.ts';
import { createLog } from '../../../shared/log.ts';
import { type ConnectionsTable, connectionsTable } from '../../../shared/tables/connections.ts';
import { type LeasesTable, leasesTable } from '../../../shared/tables/leases.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { call, setEnvironment } from '../../support/lambda.ts';

let aws: TestAws;
let connections: ConnectionsTable;
let leases: LeasesTable;

beforeAll(async () => {
  aws = await startAws({ namespace: 'fn-events' });
  setEnvironment(aws);
  connections = connectionsTable(aws.dynamodb, aws.tables.connections, { shards: 4, stoppedTtlMs: 60_000 });
  leases = leasesTable(aws.dynamodb, aws.tables.connections, { shards: 4 });
});

afterAll(() => aws?.stop());
afterEach(() => wakeUps());

const url = 'wss://feed.example.com/stream?topic=a';
const send = (body: unknown) => call(handler, { resource: '/events', body });
const start = (id: string, more: object = {}) => send({ event_type: 'START', connection_id: id, ws_url: url, ...more });
const stop = (id: string, more: object = {}) => send({ event_type: 'STOP', connection_id: id, ...more });
const item = (id: string) => connections.get(pkOf(id));
const claim = (id: string, forMs = 60_000) => leases.acquire(pkOf(id), 'worker-1', Date.now() + forMs, Date.now());

/** Takes all that is in the queue. */
async function wakeUps(): Promise<string[]> {
  const taken: string[] = [];
  for (;;) {
    const request = { QueueUrl: aws.queueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 0 };
    const { Messages: messages = [] } = await aws.sqs.send(new ReceiveMessageCommand(request));
    if (messages.length === 0) return taken;
    taken.push(...messages.map(({ Body: body }) => (JSON.parse(body ?? '') as { pk: string }).pk));
  }
}

describe('START', () => {
  test('writes what is wanted and sends a wake-up', async () => {
    expect(await start('new/one')).toMatchObject({
      status: 202,
      body: {
        connection_id: 'new/one',
        desired_state: 'STARTED',
        generation: 1,
        changed: true,
        status: 'PENDING',
        see: '/connections/new%2Fone',
      },
    });
    expect(await item('new/one')).toMatchObject({
      desiredState: 'STARTED',
      wsUrl: url,
      source: { name: 'plain' },
      leaseExpiresAtMs: 0,
    });
    expect(await wakeUps()).toEqual([pkOf('new/one')]);
  });

  test('the same again changes nothing, whatever says the same', async () => {
    await start('again');
    const before = await item('again');
    for (const more of [{}, { source: { name: 'plain' } }, { source: { name: 'plain', parameters: {} } }]) {
      expect(await start('again', more)).toMatchObject({ status: 200, body: { changed: false, generation: 1 } });
    }
    expect(await item('again')).toEqual(before);
  });

  test('again while nobody owns it sends the wake-up again: the first may have failed', async () => {
    await start('unclaimed');
    await wakeUps();
    await start('unclaimed');
    expect(await wakeUps()).toEqual([pkOf('unclaimed')]);
  });

  test('for a live connection leaves lease and position alone, ten times in parallel, and wakes nobody', async () => {
    await start('live');
    const held = await claim('live');
    if (held === 'refused') throw new Error('not claimed');
    await leases.renew(
      { pk: held.pk, owner: 'worker-1', epoch: held.leaseEpoch },
      Date.now() + 90_000,
      '17',
      Date.now(),
    );
    await wakeUps();
    const before = await item('live');
    const answers = await Promise.all(Array.from({ length: 10 }, () => start('live')));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    expect(await item('live')).toEqual(before);
    expect(await wakeUps()).toEqual([]);
  });

  test('with another URL raises the generation and leaves lease and position alone', async () => {
    await start('moved');
    await claim('moved');
    const before = await item('moved');
    await wakeUps();
    const other = 'wss://other.example.com/';
    expect(await start('moved', { ws_url: other })).toMatchObject({ status: 202, body: { generation: 2 } });
    expect(await item('moved')).toMatchObject({
      wsUrl: other,
      leaseOwner: 'worker-1',
      leaseEpoch: before?.leaseEpoch,
      leaseExpiresAtMs: before?.leaseExpiresAtMs,
    });
    expect(await wakeUps()).toEqual([]);
  });

  test('of one that waits for its next try: the same wakes nobody, a change makes it due', async () => {
    await start('parked');
    const held = await claim('parked');
    if (held === 'refused') throw new Error('not claimed');
    const notBeforeMs = Date.now() + 600_000;
    const status = { status: 'RETRYING', attempts: 10 } as const;
    await leases.release(
      { pk: held.pk, owner: 'worker-1', epoch: held.leaseEpoch },
      { lastSeq: undefined, status, notBeforeMs },
      Date.now(),
    );
    await wakeUps();
    expect(await start('parked')).toMatchObject({ status: 200 });
    expect(await wakeUps()).toEqual([]);
    expect(await start('parked', { ws_url: 'wss://fixed.example.com/' })).toMatchObject({ status: 202 });
    expect(await item('parked')).toMatchObject({ leaseExpiresAtMs: 0, attempts: 0 });
    expect(await wakeUps()).toEqual([pkOf('parked')]);
  });

  test('of one whose owner is silent sends a wake-up', async () => {
    await start('silent');
    await claim('silent', -1);
    await wakeUps();
    expect(await start('silent')).toMatchObject({ status: 200 });
    expect(await wakeUps()).toEqual([pkOf('silent')]);
  });

  test('keeps the placeholder of the position, and the source with what it was told', async () => {
    const ws_url = 'wss://feed.example.com/s?from={last_seq}';
    const source = { name: 'numbered', parameters: { final_close_codes: [4001, 4004] } };
    expect(await start('numbered', { ws_url, source })).toMatchObject({ status: 202 });
    expect(await item('numbered')).toMatchObject({ wsUrl: ws_url, source });
    expect(await start('numbered', { ws_url, source })).toMatchObject({ status: 200 });
  });

  test('from curl without a content type, and in base64', async () => {
    const body = JSON.stringify({ event_type: 'START', connection_id: 'curl', ws_url: url });
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    expect(await call(handler, { resource: '/events', body, headers })).toMatchObject({ status: 202 });
    expect(await call(handler, { resource: '/events', body, headers: {}, base64: true })).toMatchObject({
      status: 200,
    });
  });
});

describe('STOP', () => {
  test('of an unknown connection is a 404 and leaves no ghost', async () => {
    expect(await stop('ghost')).toMatchObject({ status: 404, body: { error: { code: 'unknown_connection' } } });
    expect(await item('ghost')).toBeUndefined();
  });

  test('changes once, and sends no wake-up', async () => {
    await start('ending');
    await wakeUps();
    expect(await stop('ending')).toMatchObject({ status: 202, body: { desired_state: 'STOPPED', status: 'CLOSED' } });
    expect(await stop('ending', { ws_url: url, source: { name: 'plain' } })).toMatchObject({ status: 200 });
    expect(await wakeUps()).toEqual([]);
  });

  test('of a live connection leaves the lease to its owner', async () => {
    await start('held');
    await claim('held');
    expect(await stop('held')).toMatchObject({ status: 202, body: { status: 'CONNECTING' } });
    expect(await item('held')).toMatchObject({ desiredState: 'STOPPED', leaseOwner: 'worker-1' });
  });

  test('then START raises the generation', async () => {
    await start('back');
    await stop('back');
    expect(await start('back')).toMatchObject({ status: 202, body: { generation: 2 } });
  });

  test('of an item that was written by hand, with nothing but what is needed', async () => {
    const byHand = { pk: { S: 'CONN#by-hand' }, desired_state: { S: 'STARTED' }, ws_url: { S: url } };
    await aws.dynamodb.send(new PutItemCommand({ TableName: aws.tables.connections, Item: byHand }));
    expect(await stop('by-hand')).toMatchObject({ status: 202 });
  });
});

describe('the time of an event', () => {
  const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();

  test('an older event changes nothing, and is told the newest', async () => {
    const newest = at(-10);
    await start('timed', { event_time: newest });
    const before = await item('timed');
    expect(await stop('timed', { event_time: at(-60) })).toMatchObject({
      status: 409,
      body: { error: { code: 'stale_event', field: 'event_time', newest_event_time: newest } },
    });
    expect(await item('timed')).toEqual(before);
  });

  test('is remembered also when nothing else changes', async () => {
    await start('noted', { event_time: Date.now() - 60_000 });
    expect(await start('noted', { event_time: Date.now() - 10_000 })).toMatchObject({ status: 200 });
    expect(await stop('noted', { event_time: Date.now() - 30_000 })).toMatchObject({ status: 409 });
  });

  test('with an offset', async () => {
    await start('offset', { event_time: '2026-01-01T02:00:00+02:00' });
    expect((await item('offset'))?.eventTimeMs).toBe(Date.UTC(2026, 0, 1));
  });
});

describe('faults', () => {
  const metrics = { count: jest.fn(), gauge: jest.fn(), observe: jest.fn(), publish: jest.fn(async () => undefined) };
  const parts = (): DesiredStateParts => ({
    connections,
    queue: { send: async () => undefined },
    clock: systemClock,
    metrics,
    random: () => 0,
    allowedHosts: [],
    wakeUpWithinMs: 50,
  });
  const startCall = (id: string): Call => ({
    path: {},
    query: {},
    body: { event_type: 'START', connection_id: id, ws_url: url },
    log: createLog('silent', {}),
  });

  test.each([
    ['refuses', () => Promise.reject(new Error('away'))],
    ['hangs', () => new Promise<void>(() => undefined)],
  ])('a queue that %s hides nothing: the START was applied, and says so', async (how, send) => {
    const post = changeDesiredState({ ...parts(), queue: { send } });
    expect(await post(startCall(`queue-${how}`))).toMatchObject({ status: 202 });
    expect(await item(`queue-${how}`)).toMatchObject({ desiredState: 'STARTED' });
    expect(metrics.count).toHaveBeenCalledWith('QueueFaults');
  });

  test('somebody else was faster: decides again by what is there then', async () => {
    let rivals = 2;
    const want: ConnectionsTable['want'] = async (pk, intent, seen, now) => {
      if (rivals-- > 0)
        await connections.want(pk, { ...intent, wsUrl: `wss://rival-${rivals}.example.com` }, seen, now);
      return connections.want(pk, intent, seen, now);
    };
    const post = changeDesiredState({ ...parts(), connections: { ...connections, want } });
    expect(await post(startCall('raced'))).toMatchObject({ status: 202, body: { generation: 3 } });
    expect(await item('raced')).toMatchObject({ wsUrl: url, generation: 3 });
  });

  test('gives up when others never stop, and says that nothing was applied', async () => {
    const want: ConnectionsTable['want'] = async () => 'refused';
    const post = changeDesiredState({ ...parts(), connections: { ...connections, want } });
    await expect(post(startCall('busy'))).rejects.toMatchObject({ status: 503, code: 'busy' });
  });

  test('many rivals for one new connection: one creates it, the others agree', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => start('rivals')));
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(19);
    expect(await item('rivals')).toMatchObject({ generation: 1 });
  });
});
