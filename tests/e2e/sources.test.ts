import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Rig, startRig } from '../support/e2e.ts';

let rig: Rig;
const redialsPerWorker = 4;

beforeAll(async () => {
  rig = await startRig('sources', {
    workers: 1,
    env: {
      PING_EVERY: '1',
      PONG_TIMEOUT: '1',
      CONNECT_TIMEOUT: '1',
      REDIALS_PER_WORKER: String(redialsPerWorker),
      ALLOWED_HOSTS: '127.0.0.1',
    },
  });
  rig.keepSweeping();
}, 90_000);
afterAll(() => rig?.stop(), 60_000);

describe('a handshake that is refused', () => {
  test('403: FAILED with the reason after one dial, and START tries again', async () => {
    await rig.source.control({ id: 'forbidden', refuseStatus: 403 });
    await rig.start('forbidden');
    const item = await rig.itemBecomes('forbidden', 'is FAILED', ({ status }) => status === 'FAILED');
    expect(item).toMatchObject({ statusReason: 'handshake refused: HTTP 403', attempts: 1, leaseOwner: undefined });
    await rig.source.control({ id: 'forbidden', refuseStatus: null });
    await rig.start('forbidden');
    await rig.seenBecomes('forbidden', 'is open', ({ open }) => open === 1);
    expect((await rig.seen('forbidden')).dials).toBe(2);
    const open = await rig.itemBecomes('forbidden', 'is OPEN', ({ status }) => status === 'OPEN');
    expect([open.statusReason, open.attempts]).toEqual([undefined, 0]);
  });

  test('503 with Retry-After: not dialled before that', async () => {
    await rig.source.control({ id: 'busy', refuseStatus: 503, retryAfterSeconds: 3 });
    await rig.start('busy');
    const item = await rig.itemBecomes('busy', 'is RETRYING', ({ status }) => status === 'RETRYING');
    expect(item).toMatchObject({ statusReason: 'handshake refused: HTTP 503', attempts: 1 });
    await rig.source.control({ id: 'busy', refuseStatus: null });
    const { connects, dials } = await rig.seenBecomes('busy', 'is open', ({ open }) => open === 1);
    expect(dials).toBe(2);
    const pausedMs = (connects[0]?.at ?? 0) - item.updatedAtMs;
    // The status is written a moment after the refusal.
    expect(pausedMs).toBeGreaterThan(2_500);
    expect(pausedMs).toBeLessThan(3_000 + 1_000 + 1_500);
  });

  test('never answered: given up in time, tried again', async () => {
    await rig.source.control({ id: 'mute', neverAccept: true });
    await rig.start('mute');
    const item = await rig.itemBecomes('mute', 'is RETRYING', ({ status }) => status === 'RETRYING');
    expect(item.statusReason).toBe('not open in time');
    await rig.source.control({ id: 'mute', neverAccept: null });
    await rig.seenBecomes('mute', 'is open', ({ open }) => open === 1);
  });
});

describe('a source that closes at once after accepting', () => {
  test('is tried again ever more slowly, by one worker after the other, and says so; nobody else notices', async () => {
    await rig.startAll(['healthy'], 10);
    await rig.source.control({ id: 'hasty', closeAfterOpenMs: 0, closeCode: 1011 });
    const beganMs = Date.now();
    await rig.start('hasty');
    const item = await rig.itemBecomes(
      'hasty',
      'has failed often',
      ({ attempts }) => attempts >= 2 * redialsPerWorker,
      30_000,
    );
    const { dials } = await rig.seen('hasty');
    expect(item).toMatchObject({ status: 'RETRYING', statusReason: 'closed by the source: 1011' });
    expect(dials).toBeLessThanOrEqual(item.attempts + 1);
    // Full jitter below 0.2, 0.4, 0.8, 1, 1, … seconds, and a sweep to find it again when another shall try.
    expect(Date.now() - beganMs).toBeGreaterThan(1_000);
    expect(await rig.seen('healthy')).toMatchObject({ dials: 1, open: 1 });

    await rig.source.control({ id: 'hasty', closeAfterOpenMs: null, closeCode: null });
    const open = await rig.itemBecomes('hasty', 'is OPEN', ({ status }) => status === 'OPEN', 15_000);
    expect(open.attempts).toBe(0);
    await rig.complete(['hasty', 'healthy']);
  });

  test('with a code that START calls final: FAILED', async () => {
    await rig.source.control({ id: 'over', closeAfterOpenMs: 300, closeCode: 4004 });
    await rig.start('over', { source: { name: 'numbered', parameters: { final_close_codes: [4004] } } });
    const item = await rig.itemBecomes('over', 'is FAILED', ({ status }) => status === 'FAILED');
    expect(item.statusReason).toBe('closed by the source: 4004');
    expect((await rig.seen('over')).dials).toBe(1);
  });
});

describe('a source that is cut off', () => {
  test('is dialled again under the same lease, from where it was', async () => {
    await rig.startAll(['cut'], 20);
    await rig.flows('cut');
    const before = await rig.item('cut');
    await rig.source.control({ id: 'cut', dropAll: true });
    const { connects } = await rig.seenBecomes('cut', 'is open again', ({ open, dials }) => open === 1 && dials === 2);
    expect(connects[1]?.lastSeq).toBeGreaterThan(0);
    expect((await rig.item('cut')).leaseEpoch).toBe(before.leaseEpoch);
    await rig.complete(['cut']);
  });

  test('half-open: noticed by a ping, dialled again, with nothing missing', async () => {
    await rig.startAll(['half-open'], 20);
    await rig.flows('half-open');
    const silentAtMs = Date.now();
    await rig.source.control({ id: 'half-open', silent: true });
    const { disconnects } = await rig.seenBecomes(
      'half-open',
      'is given up',
      (report) => report.disconnects.length > 0,
    );
    expect((disconnects[0]?.at ?? 0) - silentAtMs).toBeLessThan(2_000 + 1_500);
    const item = await rig.itemBecomes('half-open', 'says why', ({ status }) => status === 'RETRYING');
    expect(item.statusReason).toBe('silent: no answer to a ping');
    await rig.source.control({ id: 'half-open', silent: null });
    await rig.flows('half-open');
    await rig.complete(['half-open']);
  });

  test('quiet, but answering pings, stays open', async () => {
    await rig.start('quiet', { wsUrl: rig.url('quiet', '&rate=0') });
    const { connects } = await rig.seenBecomes('quiet', 'is open', ({ open }) => open === 1);
    // Several times as long as a silent one would have lasted.
    const report = await rig.seenBecomes('quiet', 'has been quiet', () => Date.now() - (connects[0]?.at ?? 0) > 5_000);
    expect([report.open, report.dials]).toEqual([1, 1]);
  });
});

describe('an address that isn’t public', () => {
  test.each([
    ['by its name', 'localhost', 'localhost leads to an address that isn'],
    ['as a literal', '[::ffff:127.0.0.1]', 'leads to an address that isn'],
  ])('is never dialled: %s', async (how, host, reason) => {
    const id = `private-${how.replaceAll(' ', '-')}`;
    const wsUrl = `${rig.system.sourceUrl.replace('127.0.0.1', host)}/${id}`;
    await rig.start(id, { wsUrl, source: { name: 'plain' } });
    const item = await rig.itemBecomes(id, 'is FAILED', ({ status }) => status === 'FAILED');
    expect(item.statusReason).toContain(reason);
    expect((await rig.source.report()).connections.filter((report) => report.id === id)).toEqual([]);
  });
});
