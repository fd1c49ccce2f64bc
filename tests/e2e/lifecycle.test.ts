import { DeleteItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ApiClient } from '../../local/client.ts';
import { waitFor } from '../../local/measure.ts';
import { pkOf } from '../../shared/connection.ts';
import { type Rig, startRig } from '../support/e2e.ts';

let rig: Rig;
let api: ApiClient;

beforeAll(async () => {
  rig = await startRig('lifecycle', { workers: 2, api: true, env: { MESSAGES_TTL_DAYS: '3' } });
  api = new ApiClient(rig.system.apiUrl, rig.system.apiKey);
}, 90_000);
afterAll(() => rig?.stop(), 60_000);

/** The items as they stand in the table, parts and all. */
const rows = async (id: string) => {
  const query = { KeyConditionExpression: 'pk = :pk', ExpressionAttributeValues: { ':pk': { S: pkOf(id) } } };
  const { Items: items = [] } = await rig.system.dynamodb.send(
    new QueryCommand({ TableName: rig.system.tables.messages, ...query }),
  );
  return items.map((item) => ({
    sk: item['sk']?.S ?? '',
    data: item['message_data']?.S ?? '',
    encoding: item['encoding']?.S,
    parts: Number(item['parts']?.N ?? 1),
    keptMs: Number(item['expires_at']?.N) * 1000 - Number(item['timestamp_ms']?.N),
  }));
};

const firstRows = (id: string, count: number) =>
  waitFor(`${count} messages of ${id}`, 10_000, async () => {
    const found = await rows(id);
    return found.length >= count ? found : null;
  });

describe('START', () => {
  test('through the API: a socket, and what comes through it in the table', async () => {
    expect((await api.start('text', rig.url('text', '&rate=20'))).status).toBe(202);
    const [first] = await firstRows('text', 5);
    expect(first).toMatchObject({ sk: '00000000000000000001', encoding: undefined });
    expect(JSON.parse(first?.data ?? '')).toMatchObject({ seq: 1, id: 'text' });
    expect(Math.round((first?.keptMs ?? 0) / 86_400_000)).toBe(3);
    const { body } = await api.connection('text');
    expect(body).toMatchObject({ status: 'OPEN' });
  });

  test('again, and again: one socket, the lease stays with its owner', async () => {
    const before = await rig.item('text');
    const answers = await Promise.all(Array.from({ length: 10 }, () => api.start('text', rig.url('text', '&rate=20'))));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    await rig.flows('text');
    const { leaseOwner, leaseEpoch } = await rig.item('text');
    expect([leaseOwner, leaseEpoch]).toEqual([before.leaseOwner, before.leaseEpoch]);
    expect(await rig.seen('text')).toMatchObject({ dials: 1, maxOpen: 1 });
  });

  test('binary frames are kept to the byte', async () => {
    await rig.start('binary', { wsUrl: rig.url('binary', '&rate=10&binary=1') });
    const [first] = await firstRows('binary', 3);
    expect(first?.encoding).toBe('base64');
    expect(JSON.parse(Buffer.from(first?.data ?? '', 'base64').toString('utf8'))).toMatchObject({
      seq: 1,
      id: 'binary',
    });
  });

  test('a source that doesn’t number: every frame under a key of its own', async () => {
    await rig.start('plain', { wsUrl: `${rig.system.sourceUrl}/plain?rate=20`, source: { name: 'plain' } });
    const found = await firstRows('plain', 5);
    const { leaseEpoch } = await rig.item('plain');
    expect(found.slice(0, 2).map(({ sk }) => sk)).toEqual(
      [0, 1].map((counter) => `${String(leaseEpoch).padStart(12, '0')}#${String(counter).padStart(12, '0')}`),
    );
  });

  test('a frame over the limit of an item is stored in parts', async () => {
    await rig.start('large', { wsUrl: rig.url('large', '&rate=1&size=900000') });
    const parts = (await firstRows('large', 4)).filter(({ sk }) => sk.startsWith('00000000000000000001'));
    expect(parts.map(({ parts: of }) => of)).toEqual([4, 4, 4, 4]);
    const message = JSON.parse(parts.map(({ data }) => data).join('')) as { seq: number; data: string };
    expect([message.seq, message.data.length]).toEqual([1, 900_000]);
    await rig.source.control({ id: 'large', rate: 0 });
    expect((await api.stop('large')).status).toBe(202);
  });
});

describe('another URL', () => {
  test('is dialled under the same lease', async () => {
    await rig.startAll(['moved'], 5);
    const before = await rig.item('moved');
    expect((await api.start('moved', rig.url('moved-here', '&rate=5'))).status).toBe(202);
    await rig.seenBecomes('moved-here', 'is open', ({ open }) => open === 1);
    expect(await rig.seen('moved')).toMatchObject({ open: 0, closeCodes: { 1000: 1 } });
    const { leaseOwner, leaseEpoch } = await rig.item('moved');
    expect([leaseOwner, leaseEpoch]).toEqual([before.leaseOwner, before.leaseEpoch]);
  });

  test('is dialled also while the first one hasn’t answered yet', async () => {
    await rig.source.control({ id: 'slow', neverAccept: true });
    await rig.start('slow');
    await rig.seenBecomes('slow', 'was dialled', ({ dials }) => dials === 1);
    await rig.start('slow', { wsUrl: rig.url('not-slow') });
    await rig.seenBecomes('not-slow', 'is open', ({ open }) => open === 1);
  });
});

describe('STOP', () => {
  test('closes the socket, gives the lease back, and nothing more is stored', async () => {
    expect((await api.stop('text')).status).toBe(202);
    await rig.seenBecomes('text', 'is closed', ({ open }) => open === 0, 5_000);
    const item = await rig.itemBecomes('text', 'is CLOSED', ({ status }) => status === 'CLOSED');
    expect(item).toMatchObject({ leaseOwner: undefined, leaseExpiresAtMs: 0, desiredState: 'STOPPED' });
    const last = (await rig.stored('text')).at(-1)?.seq;
    // The position is the last one stored: neither behind it nor beyond.
    expect(item.lastSeq).toBe(String(last));
    expect((await rig.seen('text')).closeCodes).toEqual({ 1000: 1 });
  });

  test('and START again resumes where it stopped', async () => {
    const { lastSeq } = await rig.item('text');
    await api.start('text', rig.url('text', '&rate=20'));
    const { connects } = await rig.seenBecomes('text', 'is open again', ({ open }) => open === 1, 5_000);
    expect(connects.at(-1)?.lastSeq).toBe(Number(lastSeq));
    await rig.complete(['text']);
  });

  test('and START at once: open in the end, and never twice', async () => {
    await rig.startAll(['flapping'], 5);
    for (let turn = 0; turn < 4; turn++) {
      await api.stop('flapping');
      await api.start('flapping', rig.url('flapping', '&rate=5'));
    }
    const { generation } = await rig.item('flapping');
    expect(generation).toBe(5);
    await rig.itemBecomes('flapping', 'is open again', ({ status, leaseOwner }) => status === 'OPEN' && !!leaseOwner);
    await rig.allOpen(['flapping']);
    expect((await rig.seen('flapping')).maxOpen).toBe(1);
  });

  test('while the claim is in flight: closed in the end', async () => {
    for (const id of ['early-stop-1', 'early-stop-2', 'early-stop-3']) {
      await api.start(id, rig.url(id));
      await api.stop(id);
      await rig.itemBecomes(
        id,
        'is let go',
        ({ leaseOwner, desiredState }) => leaseOwner === undefined && desiredState === 'STOPPED',
      );
    }
    const { connections } = await rig.source.report();
    expect(connections.filter(({ id, open }) => id.startsWith('early-stop') && open > 0)).toEqual([]);
  });
});

describe('an item that is deleted by hand', () => {
  test('ends its socket within a heartbeat, is not made again, and can be started again', async () => {
    await rig.startAll(['deleted'], 5);
    const Key = { pk: { S: pkOf('deleted') } };
    await rig.system.dynamodb.send(new DeleteItemCommand({ TableName: rig.system.tables.connections, Key }));
    await rig.seenBecomes('deleted', 'is closed', ({ open }) => open === 0, 4_000);
    expect((await api.connection('deleted')).status).toBe(404);
    expect((await api.start('deleted', rig.url('deleted', '&rate=5'))).status).toBe(202);
    await rig.allOpen(['deleted']);
    await rig.flows('deleted');
  });
});
