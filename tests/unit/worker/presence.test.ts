import { describe, expect, jest, test } from '@jest/globals';
import { Presence } from '../../../worker/presence.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { configOf, countedMetrics, keptLog } from '../../support/worker-parts.ts';
import { fakeWorkers } from '../../support/workers-table.ts';

const termMs = 20_000;
const skewMs = 1_000;
/** How long the worker itself counts on it. */
const ownMs = termMs - skewMs;
const heartbeatMs = 5_000;
const requestMs = 3_000;
const load = { held: 2, draining: false };

function presence(env: Record<string, string> = { WORKER_LEASE: 'on' }) {
  const clock = new VirtualClock();
  const table = fakeWorkers();
  const metrics = countedMetrics();
  let ids = 0;
  const parts = { config: configOf(env), clock, log: keptLog(), metrics, workers: table.workers };
  const made = new Presence({ ...parts, newId: () => `w-${++ids}` });
  const until = new AbortController();
  const registered = jest.fn();
  const register = () => void made.register(() => load, until.signal).then(registered);
  const over = jest.fn();
  const keep = () => void made.keep(() => load, until.signal).then(over);
  const fenced = jest.fn();
  const listen = () => made.fenced.addEventListener('abort', fenced);
  listen();
  return { presence: made, clock, ...table, metrics, until, registered, register, over, keep, fenced };
}

/** Registered just now, and renewing. */
async function living() {
  const made = presence();
  made.register();
  await made.clock.advance(0);
  made.keep();
  return made;
}

const renewals = ({ sent }: { sent: { operation: string }[] }) =>
  sent.filter(({ operation }) => operation === 'renew').length;

describe('registering', () => {
  test('begins the lease, with what the worker says of itself', async () => {
    const { presence: a, clock, rows } = await living();
    expect(a.valid('w-1')).toBe(true);
    expect(rows.get('w-1')).toMatchObject({ leaseExpiresAtMs: clock.now() + termMs, ...load, capacity: 700 });
  });

  test('nothing is valid before it', () => {
    const { presence: a } = presence();
    expect([a.valid('w-1'), a.mayClaim()]).toEqual([false, false]);
  });

  test('counts from before it was sent', async () => {
    const { presence: a, clock, register, fates, held } = presence();
    fates.now = 'held';
    register();
    await clock.advance(2_900);
    await held[0]?.end('answered');
    await clock.advance(ownMs - 2_900 - 1);
    expect(a.valid('w-1')).toBe(true);
    await clock.advance(1);
    expect(a.valid('w-1')).toBe(false);
  });

  test('goes on until the store answers', async () => {
    const { presence: a, clock, register, registered, fates, metrics } = presence();
    fates.now = 'unreachable';
    register();
    await clock.advance(30_500);
    expect([registered.mock.calls.length, a.valid('w-1')]).toEqual([0, false]);
    fates.now = 'answered';
    await clock.advance(1_000);
    expect([registered.mock.calls, a.id, a.valid('w-1')]).toEqual([[[true]], 'w-1', true]);
    expect(metrics.of('StoreFaults')).toBeGreaterThan(10);
  });

  test('ends when it is told to stop', async () => {
    const { clock, register, registered, fates, until } = presence();
    fates.now = 'unreachable';
    register();
    await clock.advance(100);
    until.abort();
    await clock.advance(0);
    expect(registered.mock.calls).toEqual([[false]]);
  });

  test('again after a try that was applied and not answered: believes in no more than the table has', async () => {
    const { presence: a, clock, register, fates, rows, held } = presence();
    fates.now = 'held';
    register();
    await clock.advance(3_000);
    await held[0]?.end('lost');
    await clock.advance(1_000);
    const sentAtMs = clock.monotonic();
    await held[1]?.end('answered');
    expect([a.id, rows.get('w-1')?.leaseExpiresAtMs]).toEqual(['w-1', clock.now() + termMs]);
    await clock.advance(sentAtMs + ownMs - clock.monotonic() - 1);
    expect(a.valid('w-1')).toBe(true);
    await clock.advance(1);
    expect(a.valid('w-1')).toBe(false);
  });

  test('the first of two tries comes last: the table keeps what was answered', async () => {
    const { presence: a, clock, register, fates, rows, held } = presence();
    fates.now = 'held';
    register();
    await clock.advance(3_000);
    // Not answered in time, but still on its way.
    await held[0]?.end('unreachable');
    await clock.advance(1_000);
    await held[1]?.end('answered');
    const answeredMs = rows.get('w-1')?.leaseExpiresAtMs ?? 0;
    await held[0]?.end('lost');
    expect([a.valid('w-1'), rows.get('w-1')?.leaseExpiresAtMs]).toEqual([true, answeredMs]);
  });

  test('an earlier try was applied, and meanwhile the wall clock was set back: that id isn’t counted on', async () => {
    const { presence: a, clock, register, registered, fates, rows } = presence();
    fates.now = 'lost';
    register();
    await clock.advance(0);
    clock.shiftWall(-8_000);
    fates.now = 'answered';
    await clock.advance(1_000);
    expect([registered.mock.calls, a.id]).toEqual([[[true]], 'w-2']);
    expect([a.valid('w-1'), a.valid('w-2')]).toEqual([false, true]);
    expect(rows.get('w-2')?.leaseExpiresAtMs).toBe(clock.now() + termMs);
  });

  test('an id that was buried meanwhile is burnt: a fresh one takes its place', async () => {
    const { presence: a, clock, register, fates, workers, rows } = presence();
    fates.now = 'lost';
    register();
    await clock.advance(0);
    fates.now = 'answered';
    await workers.expire('w-1', undefined, clock.now());
    await clock.advance(1_000);
    expect([a.id, a.valid('w-1'), a.valid('w-2')]).toEqual(['w-2', false, true]);
    expect([rows.get('w-1')?.expiredAtMs !== undefined, rows.get('w-2')?.expiredAtMs]).toEqual([true, undefined]);
  });
});

describe('renewing', () => {
  test('at the heartbeat, and keeps it alive', async () => {
    const made = await living();
    const { presence: a, clock, rows } = made;
    await clock.advance(heartbeatMs - 1);
    expect(renewals(made)).toBe(0);
    await clock.advance(1 + 39 * heartbeatMs);
    expect([renewals(made), a.valid('w-1')]).toEqual([40, true]);
    expect(rows.get('w-1')?.leaseExpiresAtMs).toBe(clock.now() + termMs);
  });

  test('counts each from before it was sent', async () => {
    const { presence: a, clock, fates, held } = await living();
    fates.now = 'held';
    await clock.advance(heartbeatMs + 2_900);
    await held[0]?.end('answered');
    await clock.advance(ownMs - 2_900 - 1);
    expect(a.valid('w-1')).toBe(true);
    await clock.advance(1);
    expect(a.valid('w-1')).toBe(false);
  });

  test('no answer is no loss: tried again sooner, while the lease runs', async () => {
    const made = await living();
    const { presence: a, clock, fates, fenced, metrics } = made;
    fates.now = 'unreachable';
    await clock.advance(heartbeatMs + (3 * heartbeatMs) / 4);
    expect([renewals(made), a.valid('w-1'), metrics.of('RenewalsUnanswered')]).toEqual([4, true, 4]);
    fates.now = 'answered';
    await clock.advance(heartbeatMs / 4 + ownMs - 1);
    expect([a.valid('w-1'), fenced.mock.calls.length]).toEqual([true, 0]);
  });

  test('an answer that was lost is no loss either, and the next one points further ahead', async () => {
    const { presence: a, clock, fates, sent } = await living();
    fates.now = 'lost';
    await clock.advance(heartbeatMs + heartbeatMs / 2);
    fates.now = 'answered';
    await clock.advance(heartbeatMs);
    const expiries = sent.map(({ leaseExpiresAtMs }) => leaseExpiresAtMs ?? 0);
    expect(expiries).toEqual([...new Set(expiries)].toSorted((x, y) => x - y));
    expect(a.valid('w-1')).toBe(true);
  });

  test('refused: fenced at once', async () => {
    const { presence: a, clock, workers, over, fenced, metrics } = await living();
    await workers.expire('w-1', undefined, clock.now());
    await clock.advance(heartbeatMs);
    expect([a.valid('w-1'), a.mayClaim(), a.fenced.reason]).toEqual([false, false, 'refused']);
    expect([fenced.mock.calls.length, over.mock.calls.length, metrics.of('WorkersFenced')]).toEqual([1, 1, 1]);
    expect(clock.pending).toBe(0);
  });

  test('has nothing on its way once it has returned', async () => {
    const { clock, fates, held, until, over } = await living();
    fates.now = 'held';
    await clock.advance(heartbeatMs);
    until.abort();
    await clock.advance(1);
    expect(over).not.toHaveBeenCalled();
    await held[0]?.end('answered');
    expect(over).toHaveBeenCalledTimes(1);
  });
});

describe('a lease that runs out', () => {
  test('fences by a timer, early enough for others’ clocks', async () => {
    const { presence: a, clock, fates, fenced, rows, over } = await living();
    fates.now = 'unreachable';
    await clock.advance(ownMs - 1);
    expect([a.valid('w-1'), fenced.mock.calls.length]).toEqual([true, 0]);
    await clock.advance(1);
    expect([fenced.mock.calls.length, a.fenced.reason, over.mock.calls.length]).toEqual([1, 'expired', 1]);
    expect((rows.get('w-1')?.leaseExpiresAtMs ?? 0) - clock.now()).toBe(skewMs);
  });

  test('after a freeze it is the clock that says so, before any timer has run', async () => {
    const { presence: a, clock, fenced } = await living();
    clock.freeze(45_000);
    expect(fenced).not.toHaveBeenCalled();
    expect(a.valid('w-1')).toBe(false);
    expect(fenced).toHaveBeenCalledTimes(1);
  });

  test('an answer to what was sent before the freeze doesn’t bring it back', async () => {
    const { presence: a, clock, fates, held, fenced } = await living();
    fates.now = 'held';
    await clock.advance(heartbeatMs);
    clock.freeze(45_000);
    // Sockets have their say before timers do.
    await held[0]?.end('answered');
    expect([a.valid('w-1'), fenced.mock.calls.length]).toEqual([false, 1]);
  });

  test('after a freeze nothing is renewed under that id', async () => {
    const made = await living();
    made.clock.freeze(45_000);
    await made.clock.advance(heartbeatMs);
    expect([renewals(made), made.over.mock.calls.length]).toEqual([0, 1]);
  });

  test('no claim begins that couldn’t be answered while it runs', async () => {
    const { presence: a, clock, fates } = await living();
    fates.now = 'unreachable';
    await clock.advance(ownMs - requestMs - 1);
    expect(a.mayClaim()).toBe(true);
    await clock.advance(1);
    expect([a.mayClaim(), a.valid('w-1')]).toEqual([false, true]);
  });

  test('a wall clock that is set forward, and an answer that is late: counts from before it was sent all the same', async () => {
    const { presence: a, clock, fates, held } = await living();
    clock.shiftWall(8_000);
    fates.now = 'held';
    await clock.advance(heartbeatMs + 2_900);
    await held[0]?.end('answered');
    fates.now = 'unreachable';
    await clock.advance(ownMs - 2_900 - 1);
    expect(a.valid('w-1')).toBe(true);
    await clock.advance(1);
    expect(a.valid('w-1')).toBe(false);
  });

  test('a wall clock that is set back: only what the table has granted counts', async () => {
    const made = await living();
    const { presence: a, clock, rows } = made;
    const storeAheadMs = 3_000;
    clock.shiftWall(-storeAheadMs);
    await clock.advance(heartbeatMs);
    // Others see this expiry come 3 s earlier than this worker's wall clock says.
    const ranOutForOthersMs = (rows.get('w-1')?.leaseExpiresAtMs ?? 0) - clock.now() - storeAheadMs;
    made.fates.now = 'unreachable';
    await clock.advance(ranOutForOthersMs - skewMs - 1);
    expect(a.valid('w-1')).toBe(true);
    await clock.advance(1);
    expect(a.valid('w-1')).toBe(false);
  });
});

describe('after the fence', () => {
  async function fenced() {
    const made = await living();
    made.clock.freeze(45_000);
    made.presence.valid('w-1');
    await made.clock.advance(0);
    const buried = jest.fn();
    const bury = () => void made.presence.bury(made.until.signal).then(buried);
    return { ...made, bury, buried };
  }

  test('the tombstone comes first, then the fresh id; nothing is valid under either', async () => {
    const { presence: a, clock, bury, buried, fates, held, rows } = await fenced();
    const before = a.fenced;
    fates.now = 'held';
    bury();
    await clock.advance(0);
    expect([a.id, buried.mock.calls.length]).toEqual(['w-1', 0]);
    await held[0]?.end('answered');
    expect([a.id, buried.mock.calls, rows.get('w-1')?.expiredAtMs]).toEqual(['w-2', [[true]], clock.now()]);
    expect([a.valid('w-1'), a.valid('w-2'), a.mayClaim()]).toEqual([false, false, false]);
    expect([before.aborted, a.fenced.aborted]).toEqual([true, false]);
  });

  test('a tombstone that isn’t answered is tried again, under the old id', async () => {
    const { presence: a, clock, bury, fates, log } = await fenced();
    fates.now = 'lost';
    bury();
    await clock.advance(2_500);
    expect(a.id).toBe('w-1');
    fates.now = 'answered';
    await clock.advance(1_000);
    expect([a.id, log().slice(-4)]).toEqual(['w-2', Array.from({ length: 4 }, () => 'expire w-1')]);
  });

  test('told to stop before the store answers: no fresh id', async () => {
    const { presence: a, clock, bury, buried, fates, until } = await fenced();
    fates.now = 'unreachable';
    bury();
    await clock.advance(500);
    until.abort();
    await clock.advance(0);
    expect([a.id, buried.mock.calls]).toEqual(['w-1', [[false]]]);
  });

  test('registered anew, only the fresh id is valid, and it can be fenced again', async () => {
    const { presence: a, clock, bury, register, keep } = await fenced();
    bury();
    await clock.advance(0);
    register();
    await clock.advance(0);
    keep();
    expect([a.valid('w-1'), a.valid('w-2'), a.mayClaim()]).toEqual([false, true, true]);
    await clock.advance(4 * termMs);
    expect(a.valid('w-2')).toBe(true);
    clock.freeze(45_000);
    expect([a.valid('w-2'), a.fenced.aborted]).toEqual([false, true]);
  });
});

describe('without the worker lease', () => {
  const off = { WORKER_LEASE: 'off' };

  test('it only reports: silence and refusals fence nobody', async () => {
    const made = presence(off);
    const { presence: a, clock, register, keep, fates, workers, fenced } = made;
    register();
    await clock.advance(0);
    keep();
    fates.now = 'unreachable';
    await clock.advance(10 * termMs);
    expect([a.valid('w-1'), a.mayClaim()]).toEqual([true, true]);
    fates.now = 'answered';
    await workers.expire('w-1', undefined, clock.now());
    await clock.advance(10 * termMs);
    expect([a.valid('w-1'), a.mayClaim(), fenced.mock.calls.length]).toEqual([true, true, 0]);
  });
});
