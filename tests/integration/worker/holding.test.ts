import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { waitFor } from '../../../local/measure.ts';
import { storedMessages } from '../../../local/messages.ts';
import { systemClock } from '../../../shared/clock.ts';
import type { SourceChoice } from '../../../shared/connection.ts';
import type { LeasesTable } from '../../../shared/tables/leases.ts';
import type { Context } from '../../../worker/context.ts';
import { Holdings } from '../../../worker/holdings.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { wishes } from '../../support/wishes.ts';
import { type PretendedSocket, workerOn } from '../../support/worker-on-aws.ts';

let aws: TestAws;
const running: (() => Promise<void>)[] = [];

beforeAll(async () => {
  aws = await startAws({ namespace: 'worker-holding' });
});
afterEach(async () => {
  for (const end of running.splice(0)) await end();
});
afterAll(() => aws?.stop());

const within = 5_000;
const numbered = { name: 'numbered' };

function worker(
  given: Parameters<typeof workerOn>[1] = {},
  change: (context: Context) => Partial<Context> = () => ({}),
) {
  const made = workerOn(aws, given);
  const context = { ...made.context, ...change(made.context) };
  const holdings = new Holdings(context);
  running.push(async () => {
    await holdings.drain();
    made.stop();
  });
  const { start, stop, item } = wishes(context);
  const hold = async (id: string, source: SourceChoice = numbered) => {
    const pk = await start(id, { wsUrl: `ws://source/${id}?from={last_seq}`, source });
    await holdings.take(pk);
    const holding = holdings.get(pk);
    if (!holding) throw new Error('it was not claimed');
    return { pk, holding };
  };
  const dialled = (count = 1): Promise<PretendedSocket> =>
    waitFor(`dial ${count}`, within, async () => made.sockets[count - 1] ?? null);
  return { ...made, context, holdings, start, stop, item, hold, dialled };
}

const say = ({ plan }: PretendedSocket, seq: number): boolean => plan.onFrame(Buffer.from(`{"seq":${seq}}`), false);
const stored = async (id: string) =>
  (await storedMessages(aws.dynamodb, aws.tables.messages, id)).map(({ seq }) => seq);

describe('a holding that is handed over', () => {
  test('stores what it read before it gives the lease back, with the position, and wakes somebody up last', async () => {
    const order: string[] = [];
    const { hold, dialled, item, holdings } = worker({}, ({ leases, queue, messages }) => ({
      leases: {
        ...leases,
        release: async (claim, given, nowMs) => {
          order.push(`release at ${given.lastSeq} with ${(await stored('handed-over')).length} stored`);
          return leases.release(claim, given, nowMs);
        },
      },
      queue: {
        ...queue,
        send: (wakeUp) => {
          order.push(`wake up ${wakeUp.pk}`);
          return queue.send(wakeUp);
        },
      },
      messages,
    }));
    const { pk } = await hold('handed-over');
    const socket = await dialled();
    for (let seq = 1; seq <= 300; seq++) say(socket, seq);
    await holdings.drain();
    expect(order).toEqual(['release at 300 with 300 stored', `wake up ${pk}`]);
    expect(await item('handed-over')).toMatchObject({ lastSeq: '300', status: 'PENDING', leaseOwner: undefined });
    expect([socket.state, socket.reading]).toEqual(['closed', false]);
  });

  test('takes no frame after its end has begun', async () => {
    const { hold, dialled, holdings, metrics } = worker();
    await hold('deaf');
    const socket = await dialled();
    say(socket, 1);
    const drained = holdings.drain();
    say(socket, 2);
    await drained;
    expect(await stored('deaf')).toEqual([1]);
    expect(metrics.of('ConnectionsHandedOver')).toBe(1);
  });

  test('gives the lease back again when the answer is lost, and counts it as given back', async () => {
    let releases = 0;
    const losing = ({ leases }: Context): { leases: LeasesTable } => ({
      leases: {
        ...leases,
        release: async (...request) => {
          const answer = await leases.release(...request);
          if (++releases === 1) throw new Error('socket hang up');
          return answer;
        },
      },
    });
    const env = { HEARTBEAT_EVERY: '0.5', LEASE_SECONDS: '5' };
    const { hold, dialled, holdings, item, metrics } = worker({ env }, losing);
    await hold('release-lost');
    await dialled();
    await holdings.drain();
    expect([releases, (await item('release-lost')).leaseOwner, metrics.of('LeasesLost')]).toEqual([2, undefined, 0]);
  });
});

describe('a holding that takes over', () => {
  test('resumes after the last message that is stored, and skips what it is sent again', async () => {
    const first = worker();
    const { pk } = await first.hold('resumed');
    const before = await first.dialled();
    for (const seq of [1, 2, 3]) say(before, seq);
    await waitFor('storage', within, async () => ((await stored('resumed')).length === 3 ? true : null));
    // Dies: no release, no position in the item.
    first.holdings.get(pk)?.lease.lose('expired');
    await first.context.leases.release(
      first.holdings.get(pk)?.lease.claim ?? { pk, owner: '', epoch: 0 },
      { lastSeq: undefined, status: { status: 'PENDING', attempts: 0 } },
      Date.now(),
    );
    const second = worker();
    await second.holdings.take(pk);
    const socket = await second.dialled();
    expect(socket.url).toBe('ws://source/resumed?from=3');
    for (const seq of [2, 3, 4]) say(socket, seq);
    await second.holdings.drain();
    expect(await stored('resumed')).toEqual([1, 2, 3, 4]);
    expect(second.metrics.of('MessagesRepeated')).toBe(2);
  });

  test('tries to find its position for as long as the lease lasts, and dials nobody without it', async () => {
    let asked = 0;
    const { hold, dialled, sockets } = worker({}, ({ messages }) => ({
      messages: {
        ...messages,
        newestNumbered: (...query) =>
          ++asked < 3 ? Promise.reject(new Error('away')) : messages.newestNumbered(...query),
      },
    }));
    await hold('position-late');
    expect(sockets).toEqual([]);
    await dialled();
    expect(asked).toBe(3);
  });
});

describe('a source that says no', () => {
  test('for good: FAILED with the reason, and not to be claimed again', async () => {
    const { hold, dialled, item, holdings } = worker();
    const { pk, holding } = await hold('failed');
    (await dialled()).plan.onEnd({ do: 'end', end: 'failed', reason: 'HTTP 403', attempts: 2 });
    await holding.ended;
    expect(await item('failed')).toMatchObject({
      status: 'FAILED',
      statusReason: 'HTTP 403',
      attempts: 2,
      leaseOwner: undefined,
    });
    await holdings.take(pk);
    expect(holdings.has(pk)).toBe(false);
  });

  test('for good, but meanwhile something else is wanted: free, and woken up', async () => {
    const { hold, dialled, item, start, context } = worker({ env: { LONG_POLL: '1' } });
    const { pk, holding } = await hold('failed-then-started');
    const socket = await dialled();
    await start('failed-then-started', { wsUrl: 'ws://source/better' });
    socket.plan.onEnd({ do: 'end', end: 'failed', reason: 'HTTP 403', attempts: 1 });
    await holding.ended;
    expect(await item('failed-then-started')).toMatchObject({ status: 'PENDING', leaseExpiresAtMs: 0, generation: 2 });
    await waitFor('its wake-up', within, async () => {
      const received = await context.queue.receive(10);
      await Promise.all(received.map(({ done }) => done()));
      return received.some(({ wakeUp }) => wakeUp?.pk === pk) ? true : null;
    });
  });

  test('too often: without an owner, but not before the next try is due', async () => {
    const { hold, dialled, item, holdings } = worker();
    const { pk, holding } = await hold('exhausted');
    const beganMs = Date.now();
    (await dialled()).plan.onEnd({ do: 'end', end: 'exhausted', reason: 'closed', attempts: 10, waitMs: 30_000 });
    await holding.ended;
    const after = await item('exhausted');
    expect(after).toMatchObject({ status: 'RETRYING', statusReason: 'closed', attempts: 10, leaseOwner: undefined });
    expect(after.leaseExpiresAtMs).toBeGreaterThanOrEqual(beganMs + 30_000);
    await holdings.take(pk);
    expect(holdings.has(pk)).toBe(false);
  });
});

describe('an item that this revision can’t use', () => {
  test.each([
    ['an unknown source', { name: 'from-the-future' }, 'from-the-future'],
    ['parameters that are no good', { name: 'numbered', parameters: { final_close_codes: 'all' } }, 'parameters'],
  ])('%s: FAILED with the reason, and never dialled', async (what, source, reason) => {
    const id = what.replaceAll(' ', '-');
    const { hold, item, sockets } = worker();
    const { holding } = await hold(id, source);
    expect(await holding.ended).toMatchObject({ why: 'failed' });
    const after = await item(id);
    expect([after.status, after.statusReason?.includes(reason), sockets]).toEqual(['FAILED', true, []]);
  });
});

describe('a lost lease', () => {
  test('ends the socket in the same turn, stores nothing more and writes nothing more', async () => {
    const { hold, dialled, item } = worker();
    const { holding } = await hold('lost');
    const socket = await dialled();
    const before = await item('lost');
    say(socket, 1);
    holding.lease.lose('refused');
    expect(socket.state).toBe('terminated');
    say(socket, 2);
    expect(await holding.ended).toEqual({ why: 'lost', loss: 'refused' });
    expect(await stored('lost')).toEqual([]);
    expect(await item('lost')).toEqual(before);
  });

  test('is noticed by the next frame, if no timer had its turn yet', async () => {
    let frozenMs = 0;
    const clock = systemClock;
    const { hold, dialled, context } = worker({ clock: { ...clock, monotonic: () => clock.monotonic() + frozenMs } });
    const { holding } = await hold('frozen');
    const socket = await dialled();
    frozenMs = context.config.connectionLease.forMs;
    say(socket, 1);
    expect([socket.state, holding.lease.loss]).toEqual(['terminated', 'expired']);
    await holding.ended;
    expect(await stored('frozen')).toEqual([]);
  });
});

describe('a full lane', () => {
  test('pauses the socket, and resumes it when there is room', async () => {
    const { hold, dialled, metrics } = worker();
    await hold('full');
    const socket = await dialled();
    const text = 'x'.repeat(100_000);
    let seq = 0;
    while (!socket.plan.onFrame(Buffer.from(`{"seq":${++seq},"data":"${text}"}`), false));
    expect(seq).toBeGreaterThan(5);
    await waitFor('room', within, async () => (socket.resumed > 0 ? true : null));
    expect(metrics.of('SocketsPaused')).toBe(1);
  });
});
