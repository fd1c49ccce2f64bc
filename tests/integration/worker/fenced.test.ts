import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { waitFor } from '../../../local/measure.ts';
import { storedMessages } from '../../../local/messages.ts';
import { systemClock } from '../../../shared/clock.ts';
import { pkOf } from '../../../shared/connection.ts';
import type { WorkersTable } from '../../../shared/tables/workers.ts';
import type { Context } from '../../../worker/context.ts';
import { newWorkerId, Presence } from '../../../worker/presence.ts';
import { runWorker, type WorkerEnd } from '../../../worker/worker.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { wishes } from '../../support/wishes.ts';
import { type PretendedSocket, workerOn } from '../../support/worker-on-aws.ts';

let aws: TestAws;
const running: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  aws = await startAws({ namespace: 'worker-fenced' });
});
afterEach(async () => {
  for (const end of running.splice(0)) await end();
});
afterAll(() => aws?.stop());

const within = 10_000;
const env = {
  WORKER_LEASE: 'on',
  LEASE_SECONDS: '2',
  HEARTBEAT_EVERY: '0.4',
  REQUEST_TIMEOUT: '0.3',
  CLOCK_SKEW: '0.4',
  STOP_CHECK_EVERY: '0.5',
  LONG_POLL: '1',
  STOP_TIMEOUT: '10',
};

/** A whole worker with a lease of its own, in this process. */
function worker(change: (context: Context) => Partial<Context> = () => ({})) {
  let frozenMs = 0;
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + frozenMs };
  const made = workerOn(aws, { env, clock });
  const faults = { away: false };
  const { workers: table } = made.context;
  const unlessAway =
    <Given extends unknown[], Answer>(call: (...given: Given) => Promise<Answer>) =>
    (...given: Given): Promise<Answer> =>
      faults.away ? Promise.reject(new Error('away')) : call(...given);
  const workers: WorkersTable = {
    ...table,
    register: unlessAway(table.register),
    renew: unlessAway(table.renew),
    expire: unlessAway((...given: Parameters<WorkersTable['expire']>) => table.expire(...given)),
  };
  const presence = new Presence({ ...made.context, workers, newId: newWorkerId });
  const base = { ...made.context, workers, presence };
  const context = { ...base, ...change(base) };
  const stop = new AbortController();
  const ended = runWorker(context, stop.signal, () => undefined);
  running.push(async () => {
    stop.abort();
    made.stop();
    return ended;
  });
  const { start, item } = wishes(context);
  /** Wanted, and held by this worker. */
  const hold = async (id: string): Promise<PretendedSocket> => {
    const pk = await start(id, { wsUrl: `ws://source/${id}`, source: { name: 'numbered' } });
    await context.queue.send({ pk });
    return dialled(id);
  };
  const dialled = (id: string, count = 1): Promise<PretendedSocket> =>
    waitFor(`dial ${count} of ${id}`, within, async () => {
      const [found] = made.sockets.filter(({ url }) => url === `ws://source/${id}`).slice(count - 1);
      return found ?? null;
    });
  const freeze = (ms: number) => {
    frozenMs += ms;
  };
  return { ...made, context, presence, faults, table, freeze, hold, dialled, item, stop, ended };
}

const say = ({ plan }: PretendedSocket, seq: number): boolean => plan.onFrame(Buffer.from(`{"seq":${seq}}`), false);
const stored = (id: string) => storedMessages(aws.dynamodb, aws.tables.messages, id);

describe('a worker that is fenced', () => {
  test('because somebody buried it: lets go, comes back under a fresh id, and holds again what it held', async () => {
    const { hold, dialled, item, presence, table, metrics } = worker();
    const before = await hold('buried');
    say(before, 1);
    await waitFor('storage', within, async () => (await stored('buried')).length === 1 || null);
    const old = await item('buried');
    const { id } = presence;
    expect(old.leaseOwner).toBe(id);
    await table.expire(id, undefined, Date.now());
    const after = await dialled('buried', 2);
    expect(before.state).toBe('terminated');
    expect(presence.id).not.toBe(id);
    expect(await item('buried')).toMatchObject({ leaseOwner: presence.id, leaseEpoch: old.leaseEpoch + 1 });
    say(after, 2);
    await waitFor('storage', within, async () => (await stored('buried')).length === 2 || null);
    expect((await stored('buried')).map(({ seq, workerId }) => [seq, workerId])).toEqual([
      [1, id],
      [2, presence.id],
    ]);
    expect(metrics.of('WorkersFenced')).toBe(1);
  });

  test('because the store was silent: stores nothing more under its old id, and doesn’t end', async () => {
    const { hold, dialled, item, presence, faults, table } = worker();
    const before = await hold('silent');
    const { id } = presence;
    const leaseEpoch = (await item('silent')).leaseEpoch;
    faults.away = true;
    await waitFor('the end of the socket', within, async () => before.state === 'terminated' || null);
    // Others see its lease run on still: it has let go before.
    expect(((await table.get(id))?.leaseExpiresAtMs ?? 0) - Date.now()).toBeGreaterThan(0);
    say(before, 1);
    expect([presence.id, (await item('silent')).leaseEpoch]).toEqual([id, leaseEpoch]);
    faults.away = false;
    const after = await dialled('silent', 2);
    expect((await table.get(id))?.expiredAtMs).toEqual(expect.any(Number));
    say(after, 2);
    await waitFor('storage', within, async () => (await stored('silent')).length > 0 || null);
    expect((await stored('silent')).map(({ seq, workerId }) => [seq, workerId])).toEqual([[2, presence.id]]);
  });

  test('because it was frozen: the next frame ends it, before any timer does', async () => {
    const { hold, dialled, presence, freeze } = worker();
    const before = await hold('frozen');
    const { id } = presence;
    say(before, 1);
    freeze(60_000);
    say(before, 2);
    expect([before.state, presence.valid(id)]).toEqual(['terminated', false]);
    await dialled('frozen', 2);
    expect(presence.id).not.toBe(id);
    expect((await stored('frozen')).filter(({ workerId, seq }) => workerId === id && seq === 2)).toEqual([]);
  });

  test('doesn’t take again what somebody has taken meanwhile', async () => {
    const { hold, item, presence, table, context, freeze, sockets } = worker();
    const before = await hold('taken');
    const { id } = presence;
    const { leaseEpoch } = await item('taken');
    await table.expire(id, undefined, Date.now());
    const dead = { owner: id, epoch: leaseEpoch };
    await context.leases.acquire(pkOf('taken'), 'somebody', Date.now() + 60_000, Date.now(), dead);
    freeze(60_000);
    await waitFor('the fresh id', within, async () => (presence.id !== id && presence.valid(presence.id)) || null);
    expect(before.state).toBe('terminated');
    await hold('another');
    expect(await item('taken')).toMatchObject({ leaseOwner: 'somebody', leaseEpoch: leaseEpoch + 1 });
    expect(sockets.filter(({ url }) => url.endsWith('/taken'))).toHaveLength(1);
  });

  test('and can’t end in time what it held: this process must not go on', async () => {
    const never = new Promise<never>(() => undefined);
    const hanging = { now: false };
    const { hold, presence, table, ended, item } = worker(({ leases }) => ({
      leases: { ...leases, setStatus: (...given) => (hanging.now ? never : leases.setStatus(...given)) },
    }));
    const socket = await hold('hanging');
    const { id } = presence;
    hanging.now = true;
    socket.plan.onStatus({ do: 'report', status: 'OPEN' });
    await table.expire(id, undefined, Date.now());
    const end: WorkerEnd = await ended;
    expect([end, socket.state, presence.id]).toEqual(['unfenced', 'terminated', id]);
    expect((await item('hanging')).leaseOwner).toBe(id);
  });
});

test('a worker that is told to stop buries its own id once it has handed over', async () => {
  const { hold, item, presence, table, stop, ended } = worker();
  await hold('handed-over');
  stop.abort();
  expect(await ended).toBe('drained');
  expect((await item('handed-over')).leaseOwner).toBeUndefined();
  expect(await table.get(presence.id)).toMatchObject({ expiredAtMs: expect.any(Number), held: 0 });
});

test('a worker that is told to stop while it is fenced ends all the same', async () => {
  const { hold, faults, stop, ended, presence } = worker();
  const socket = await hold('stopped-fenced');
  faults.away = true;
  await waitFor('the fence', within, async () => !presence.valid(presence.id) || null);
  stop.abort();
  expect([await ended, socket.state]).toEqual(['drained', 'terminated']);
});
