import { DeleteItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { waitFor } from '../../../local/measure.ts';
import type { Connection } from '../../../shared/connection.ts';
import type { ConnectionsTable, OwnedRow } from '../../../shared/tables/connections.ts';
import { Holdings } from '../../../worker/holdings.ts';
import { watchOwned } from '../../../worker/owned.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { wishes } from '../../support/wishes.ts';
import { workerOn } from '../../support/worker-on-aws.ts';

let aws: TestAws;
const running: (() => Promise<void>)[] = [];

beforeAll(async () => {
  aws = await startAws({ namespace: 'worker-owned' });
});
afterEach(async () => {
  for (const end of running.splice(0)) await end();
});
afterAll(() => aws?.stop());

const within = 5_000;

type Watched = { env?: Record<string, string>; hidden?: string[]; stale?: (row: OwnedRow) => OwnedRow };

/**
 * A worker that only looks at what it owns, twenty times a second.
 * @param hidden rows that its index doesn't show
 * @param stale  how its index shows rows that it hasn't caught up with
 */
function watching({ env = {}, hidden = [], stale = (row) => row }: Watched = {}) {
  const plain = workerOn(aws, { env: { STOP_CHECK_EVERY: '0.05', LONG_POLL: '1', ...env } });
  let looks = 0;
  const ownedBy: ConnectionsTable['ownedBy'] = async (...query) => {
    const page = await plain.context.connections.ownedBy(...query);
    looks++;
    return { ...page, rows: page.rows.filter(({ pk }) => !hidden.includes(pk)).map(stale) };
  };
  const reads: string[] = [];
  const get: ConnectionsTable['get'] = (pk) => {
    reads.push(pk);
    return plain.context.connections.get(pk);
  };
  const context = { ...plain.context, connections: { ...plain.context.connections, ownedBy, get } };
  const holdings = new Holdings(context);
  const stop = new AbortController();
  const watched = watchOwned(context, holdings, stop.signal);
  running.push(async () => {
    stop.abort();
    await watched;
    await holdings.drain();
    plain.stop();
  });
  const { start, stop: stopWish, item } = wishes(context);
  const hold = async (id: string, wsUrl = `ws://source/${id}`) => {
    const pk = await start(id, { wsUrl });
    expect(await holdings.take(pk)).toBe('settled');
    const holding = holdings.get(pk);
    if (!holding) throw new Error('it was not claimed');
    await waitFor('the first dial', within, async () => plain.sockets.find(({ url }) => url === wsUrl) ?? null);
    return { pk, holding };
  };
  const looked = async (times: number) => {
    const enough = looks + times;
    await waitFor('looks at the index', within, async () => (looks >= enough ? true : null));
  };
  return { ...plain, context, reads, looked, holdings, start, stopWish, item, hold };
}

const becomes = (what: string, item: () => Promise<Connection>, is: (item: Connection) => boolean) =>
  waitFor(what, within, async () => {
    const now = await item();
    return is(now) ? now : null;
  });

/** Raw, as a person at the console would. */
const edit = (pk: string, UpdateExpression: string, values: Record<string, { S: string } | { N: string }>) =>
  aws.dynamodb.send(
    new UpdateItemCommand({
      TableName: aws.tables.connections,
      Key: { pk: { S: pk } },
      UpdateExpression,
      ExpressionAttributeValues: values,
    }),
  );

describe('what is held', () => {
  test('ends at STOP: socket closed, lease given back, item CLOSED', async () => {
    const { hold, stopWish, item, sockets, holdings } = watching();
    const { holding, pk } = await hold('stop');
    await stopWish('stop');
    expect(await holding.ended).toEqual({ why: 'stopped' });
    expect(sockets.map(({ state }) => state)).toEqual(['closed']);
    expect(await item('stop')).toMatchObject({ status: 'CLOSED', leaseExpiresAtMs: 0, leaseOwner: undefined });
    expect(holdings.has(pk)).toBe(false);
  });

  test('is dialled anew, under the same lease, when something else is wanted', async () => {
    const { hold, start, sockets, item } = watching();
    const { holding } = await hold('changed');
    const { epoch } = holding.lease.claim;
    await start('changed', { wsUrl: 'ws://source/elsewhere' });
    await waitFor('the new dial', within, async () => sockets[1] ?? null);
    expect(sockets.map(({ url, state }) => [url, state])).toEqual([
      ['ws://source/changed', 'closed'],
      ['ws://source/elsewhere', 'open'],
    ]);
    expect([(await item('changed')).leaseEpoch, holding.generation]).toEqual([epoch, 2]);
  });

  test('a STOP and a START at once: goes on with what was said last', async () => {
    const { hold, start, stopWish, holdings, sockets } = watching();
    const { pk } = await hold('changed-mind');
    await stopWish('changed-mind');
    await start('changed-mind', { wsUrl: 'ws://source/last' });
    await waitFor('the last word', within, async () => {
      await holdings.take(pk);
      return sockets.some(({ url, state }) => url === 'ws://source/last' && state === 'open') ? true : null;
    });
    expect(sockets.filter(({ state }) => state === 'open')).toHaveLength(1);
  });

  test('a START and a STOP at once: ends', async () => {
    const { hold, start, stopWish, item, sockets } = watching();
    const { holding } = await hold('no-after-all');
    await start('no-after-all', { wsUrl: 'ws://source/never-mind' });
    await stopWish('no-after-all');
    expect(await holding.ended).toEqual({ why: 'stopped' });
    expect((await item('no-after-all')).status).toBe('CLOSED');
    expect(sockets.filter(({ state }) => state === 'open')).toEqual([]);
  });

  test('one whose item nobody can read keeps STOP from no other', async () => {
    const { hold, stopWish, log } = watching();
    const { pk: broken } = await hold('a-broken');
    const { holding } = await hold('b-sound');
    await edit(broken, 'SET ws_url = :nonsense, generation = :more', { ':nonsense': { N: '7' }, ':more': { N: '5' } });
    await stopWish('b-sound');
    expect(await holding.ended).toEqual({ why: 'stopped' });
    expect(log.lines).toContainEqual(
      expect.objectContaining({ event: 'owned.unsettled', fields: expect.objectContaining({ connection: broken }) }),
    );
  });

  test('a nonsensical wish is no STOP, and keeps STOP from no other', async () => {
    const { hold, stopWish, holdings } = watching();
    const { pk: broken } = await hold('c-broken');
    const { holding } = await hold('d-sound');
    await edit(broken, 'SET desired_state = :nonsense', { ':nonsense': { S: 'maybe' } });
    await stopWish('d-sound');
    expect(await holding.ended).toEqual({ why: 'stopped' });
    expect(holdings.get(broken)?.lease.loss).toBeUndefined();
  });
});

describe('a row that the index hasn’t caught up with', () => {
  test.each<[string, Partial<OwnedRow>]>([
    ['a STOP before the START that is held', { desiredState: 'STOPPED', generation: 0 }],
    ['a STOP in an earlier epoch', { desiredState: 'STOPPED', leaseEpoch: 1 }],
    ['something else that was wanted before', { generation: 0 }],
  ])('says nothing: %s', async (what, older) => {
    const { hold, looked, sockets } = watching({ stale: (row) => ({ ...row, ...older }) });
    const { holding } = await hold(what.replaceAll(' ', '-'));
    await looked(4);
    expect([holding.ending, sockets.length]).toEqual([false, 1]);
  });
});

describe('what the index doesn’t show', () => {
  const hidden = ['CONN#unseen', 'CONN#unseen-stopped', 'CONN#unseen-gone', 'CONN#unseen-taken'];
  /** The index may not know yet of a claim that is younger than that. */
  const freshForMs = 1_000;

  test('is looked at, and goes on when the item says so', async () => {
    const { hold, reads } = watching({ hidden });
    const { holding } = await hold('unseen');
    const before = reads.length;
    await waitFor('looks at the item', within, async () => (reads.length >= before + 3 ? true : null));
    expect([holding.ending, holding.lease.valid()]).toEqual([false, true]);
  });

  test('is stopped when the item says so', async () => {
    const { hold, stopWish } = watching({ hidden });
    const { holding } = await hold('unseen-stopped');
    await stopWish('unseen-stopped');
    expect(await holding.ended).toEqual({ why: 'stopped' });
  });

  test('is lost when there is no item, and none is made', async () => {
    const { hold, context, sockets } = watching({ hidden });
    const { holding, pk } = await hold('unseen-gone');
    await aws.dynamodb.send(new DeleteItemCommand({ TableName: aws.tables.connections, Key: { pk: { S: pk } } }));
    expect(await holding.ended).toEqual({ why: 'lost', loss: 'gone' });
    expect(sockets.map(({ state }) => state)).toEqual(['terminated']);
    expect(await context.connections.get(pk)).toBeUndefined();
  });

  test('is lost when another owns it, and the other’s item is left as it is', async () => {
    const { hold, item } = watching({ hidden });
    const { holding, pk } = await hold('unseen-taken');
    await edit(pk, 'SET lease_owner = :other, lease_epoch = lease_epoch + :one', {
      ':other': { S: 'w-other' },
      ':one': { N: '1' },
    });
    const before = await item('unseen-taken');
    expect(await holding.ended).toEqual({ why: 'lost', loss: 'refused' });
    expect(await item('unseen-taken')).toEqual(before);
  });

  test('is left alone while the claim is fresh', async () => {
    const { hold, reads } = watching({ hidden });
    const { holding } = await hold('unseen');
    const before = reads.length;
    await waitFor('a look at the item', within, async () => (reads.length > before ? true : null));
    expect(performance.now() - holding.sinceMs).toBeGreaterThan(freshForMs);
  });
});

describe('what the table says is ours, and isn’t held', () => {
  /** A claim whose answer never came. */
  const claimed = async (id: string, { context, start }: ReturnType<typeof watching>) => {
    const pk = await start(id, { wsUrl: `ws://source/${id}` });
    await context.leases.acquire(pk, context.presence.id, Date.now() + 15_000, Date.now());
    return pk;
  };

  test('is adopted under a new epoch, and dialled', async () => {
    const made = watching();
    const pk = await claimed('forgotten', made);
    const { leaseEpoch } = await made.item('forgotten');
    const holding = await waitFor('the adoption', within, async () => made.holdings.get(pk) ?? null);
    expect(holding.lease.claim.epoch).toBeGreaterThanOrEqual(leaseEpoch);
    await waitFor('a dial', within, async () => made.sockets[0] ?? null);
    expect(made.log.lines.filter(({ event }) => event === 'claim.adopted')).toHaveLength(1);
  });

  test('is given back, with a wake-up, when there is no room', async () => {
    const made = watching({ env: { MAX_CONNECTIONS: '1' } });
    await made.hold('only-one');
    const pk = await claimed('one-too-many', made);
    await becomes(
      'free',
      () => made.item('one-too-many'),
      ({ leaseOwner }) => leaseOwner === undefined,
    );
    const hints = await waitFor('its wake-up', within, async () => {
      const received = await made.context.queue.receive(10);
      await Promise.all(received.map(({ done }) => done()));
      return received.some(({ wakeUp }) => wakeUp?.pk === pk) ? received : null;
    });
    expect(hints).not.toEqual([]);
    expect(made.holdings.held).toBe(1);
  });

  test('is given back, without one, when nobody wants it', async () => {
    const made = watching();
    const pk = await claimed('unwanted', made);
    await made.stopWish('unwanted');
    const after = await becomes(
      'free',
      () => made.item('unwanted'),
      ({ leaseOwner }) => leaseOwner === undefined,
    );
    expect(after).toMatchObject({ status: 'CLOSED', leaseExpiresAtMs: 0 });
    expect([made.holdings.has(pk), made.sockets.filter(({ url }) => url.endsWith('unwanted'))]).toEqual([false, []]);
  });
});
