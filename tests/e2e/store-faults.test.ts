import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { waitFor } from '../../local/measure.ts';
import { type DynamoProxy, startDynamoProxy } from '../support/dynamo-proxy.ts';
import { leaseMs, type Rig, startRig } from '../support/e2e.ts';
import { workerLease } from '../support/worker-parts.ts';

let rig: Rig;
let proxy: DynamoProxy;
const ids = Array.from({ length: 10 }, (_, index) => `c-${index + 1}`);

beforeAll(async () => {
  rig = await startRig('store-faults', { workers: 0 });
  proxy = await startDynamoProxy({ target: rig.system.dynamodbUrl });
  for (let count = 0; count < 2; count++) await rig.addWorker({ AWS_ENDPOINT_URL_DYNAMODB: proxy.url });
  rig.keepSweeping();
}, 90_000);
afterAll(async () => {
  await rig?.stop();
  await proxy?.close();
}, 60_000);

const owners = async () =>
  (await Promise.all(ids.map((id) => rig.item(id)))).map(({ leaseOwner, leaseEpoch }) => [leaseOwner, leaseEpoch]);
const dials = async () => (await Promise.all(ids.map((id) => rig.seen(id)))).map((report) => report.dials);

describe('answers of DynamoDB that get lost', () => {
  test('while claims are made: each is held once', async () => {
    proxy.control({ dropAnswerEvery: 2, operations: ['UpdateItem'] });
    await rig.startAll(ids, 10);
    proxy.control({ dropAnswerEvery: 0 });
    expect(proxy.counts().droppedAnswers).toBeGreaterThan(2);
    for (const id of ids) expect(await rig.seen(id)).toMatchObject({ open: 1, maxOpen: 1 });
  }, 60_000);

  test('while leases are renewed and messages are stored: no change of owner, no new dial, nothing missing', async () => {
    const before = { owners: await owners(), dials: await dials() };
    const expiries = async () => {
      const leases = workerLease === 'on' ? await rig.workerRows() : await Promise.all(ids.map((id) => rig.item(id)));
      return leases.map(({ leaseExpiresAtMs }) => leaseExpiresAtMs);
    };
    const longAfterMs = Math.max(...(await expiries())) + leaseMs;
    proxy.resetCounts();
    proxy.control({ dropAnswerEvery: 5, operations: ['UpdateItem', 'BatchWriteItem'] });
    await waitFor(
      'more than a lease of renewals',
      4 * leaseMs,
      async () => Math.min(...(await expiries())) > longAfterMs || null,
    );
    proxy.control({ dropAnswerEvery: 0 });
    expect(proxy.counts().droppedAnswers).toBeGreaterThan(10);
    expect({ owners: await owners(), dials: await dials() }).toEqual(before);
    await Promise.all(ids.map((id) => rig.flows(id)));
  }, 60_000);

  test('throttling is no loss either', async () => {
    const before = await owners();
    proxy.resetCounts();
    proxy.control({ failEvery: 3, failWith: 'ThrottlingException', operations: ['UpdateItem', 'BatchWriteItem'] });
    await waitFor('many refusals', 20_000, async () => proxy.counts().failed > 30 || null);
    proxy.control({ failEvery: 0 });
    expect(await owners()).toEqual(before);
  }, 60_000);
});

describe('a DynamoDB that is silent', () => {
  test('for less than a lease: nothing is dropped', async () => {
    const before = { owners: await owners(), dials: await dials() };
    proxy.control({ silentForMs: leaseMs / 2, operations: ['UpdateItem', 'BatchWriteItem', 'GetItem', 'Query'] });
    await waitFor('the silence', leaseMs, async () => proxy.counts().swallowed > 5 || null);
    await Promise.all(ids.map((id) => rig.flows(id)));
    expect({ owners: await owners(), dials: await dials() }).toEqual(before);
  }, 60_000);

  test('for longer: every socket is closed before its lease ends; all are back afterwards, with nothing missing', async () => {
    const epochs = new Map((await owners()).map(([, epoch], index) => [ids[index], Number(epoch)]));
    const silentAtMs = Date.now();
    proxy.control({ silentForMs: leaseMs + 3_000 });
    for (const id of ids) await rig.seenBecomes(id, 'is closed', ({ open }) => open === 0, leaseMs + 2_000);
    for (const id of ids) {
      const { disconnects } = await rig.seen(id);
      // The last renewal that was granted was sent before the silence began.
      expect((disconnects.at(-1)?.at ?? Number.POSITIVE_INFINITY) - silentAtMs).toBeLessThan(leaseMs);
    }
    await rig.allOpen(ids, leaseMs + 25_000);
    const messages = await rig.complete(ids);
    for (const id of ids) {
      expect((await rig.seen(id)).maxOpen).toBe(1);
      expect((await rig.item(id)).leaseEpoch).toBeGreaterThan(epochs.get(id) ?? 0);
      // In the order of their numbers, no message has an older epoch than the one before.
      const seen = messages.get(id)?.map(({ epoch }) => epoch) ?? [];
      expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    }
  }, 90_000);
});
