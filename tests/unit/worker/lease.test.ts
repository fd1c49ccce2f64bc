import { describe, expect, jest, test } from '@jest/globals';
import { Lease } from '../../../worker/lease.ts';
import { fakeRenewals, type Renewal } from '../../support/leases-table.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { contextOf, livingPresence } from '../../support/worker-parts.ts';

const skewMs = 1_000;
/** After an unanswered try. */
const retryMs = 1_250;

type Mode = { mode: string; env: Record<string, string>; termMs: number; heartbeatMs: number };
const modes: Mode[] = [
  { mode: 'without the worker lease', env: { WORKER_LEASE: 'off' }, termMs: 20_000, heartbeatMs: 5_000 },
  {
    mode: 'below the worker lease',
    env: { WORKER_LEASE: 'on', CONNECTION_LEASE_SECONDS: '60' },
    termMs: 60_000,
    heartbeatMs: 20_000,
  },
];

/** How long the holder counts on it, and when the first renewal is due: `random` is 0.5 here. */
const timesOf = ({ termMs, heartbeatMs }: Mode) => ({ ownMs: termMs - skewMs, firstMs: heartbeatMs * 0.75 });

/** A lease that was acquired just now, with renewals that the test answers. */
function lease({ env, termMs }: Mode, { sentAgoMs = 0 } = {}) {
  const clock = new VirtualClock();
  const { leases, sent } = fakeRenewals();
  const { presence, fence } = livingPresence('w-me');
  const { context, metrics } = contextOf({ clock, leases, presence, env });
  clock.freeze(sentAgoMs);
  const term = { sentAtMs: clock.monotonic() - sentAgoMs, expiresAtMs: clock.now() - sentAgoMs + termMs };
  const made = new Lease(context, { pk: 'CONN#a', owner: 'w-me', epoch: 7 }, term);
  const until = new AbortController();
  const over = jest.fn();
  const keep = () => void made.keep(() => '42', until.signal).then(over);
  const lost = jest.fn();
  made.signal.addEventListener('abort', lost);
  const renewal = (index: number): Renewal => {
    const found = sent[index];
    if (!found) throw new Error(`renewal ${index} was not sent`);
    return found;
  };
  return { lease: made, clock, sent, renewal, keep, until, over, lost, metrics, fence };
}

describe.each(modes)('a lease, $mode', (mode) => {
  const { ownMs } = timesOf(mode);

  test('is over early enough for others’ clocks, by a timer of its own', async () => {
    const { lease: a, clock, lost } = lease(mode);
    await clock.advance(ownMs - 1);
    expect([a.valid(), lost.mock.calls.length]).toEqual([true, 0]);
    await clock.advance(1);
    expect([a.loss, lost.mock.calls.length]).toEqual(['expired', 1]);
    expect(clock.pending).toBe(0);
  });

  test('counts from before its request was sent, not from the answer', async () => {
    const { lease: a, clock } = lease(mode, { sentAgoMs: 2_500 });
    await clock.advance(ownMs - 2_500 - 1);
    expect(a.valid()).toBe(true);
    await clock.advance(1);
    expect(a.valid()).toBe(false);
  });

  test('whose answer came too late is never valid', () => {
    const { lease: a, lost } = lease(mode, { sentAgoMs: ownMs });
    expect([a.valid(), a.signal.aborted, lost.mock.calls.length]).toEqual([false, true, 1]);
  });

  test('asks the clock and not its timers: after a freeze it is over before any timer has run', () => {
    const { lease: a, clock, lost } = lease(mode);
    clock.freeze(mode.termMs);
    expect(lost).not.toHaveBeenCalled();
    expect(a.valid()).toBe(false);
    expect(lost).toHaveBeenCalledTimes(1);
  });

  test('is lost once, for the first reason', () => {
    const { lease: a, lost } = lease(mode);
    a.lose('refused');
    a.lose('gone');
    expect([a.loss, lost.mock.calls.length]).toEqual(['refused', 1]);
  });

  test('is lost with the worker’s own, before any timer has run', () => {
    const { lease: a, lost, fence } = lease(mode);
    fence();
    expect(lost).not.toHaveBeenCalled();
    expect([a.valid(), a.loss, lost.mock.calls.length]).toEqual([false, 'fenced', 1]);
  });

  test('that is not needed any more leaves no timer', async () => {
    const { lease: a, clock, lost } = lease(mode);
    a.close();
    await clock.advance(60_000);
    expect([clock.pending, lost.mock.calls.length]).toEqual([0, 0]);
  });
});

describe.each(modes)('renewing, $mode', (mode) => {
  const { termMs, heartbeatMs } = mode;
  const { ownMs, firstMs } = timesOf(mode);

  test('goes on at the heartbeat, with the position, and keeps the lease', async () => {
    const { lease: a, clock, sent, renewal, keep } = lease(mode);
    keep();
    await clock.advance(firstMs - 1);
    expect(sent).toHaveLength(0);
    await clock.advance(1);
    expect(renewal(0)).toMatchObject({ lastSeq: '42', expiresAtMs: clock.now() + termMs });
    for (let beat = 0; beat < 20; beat++) {
      await renewal(beat).answer('renewed');
      await clock.advance(heartbeatMs);
      expect(sent).toHaveLength(beat + 2);
    }
    expect(a.valid()).toBe(true);
  });

  test('counts each renewal from before it was sent', async () => {
    const { lease: a, clock, renewal, keep } = lease(mode);
    keep();
    await clock.advance(firstMs);
    await clock.advance(2_900);
    await renewal(0).answer('renewed');
    // Nothing is answered any more.
    await clock.advance(ownMs - 2_900 - 1);
    expect(a.valid()).toBe(true);
    await clock.advance(1);
    expect(a.loss).toBe('expired');
  });

  test('a wait for an answer doesn’t slow the heartbeat down', async () => {
    const { clock, renewal, sent, keep } = lease(mode);
    keep();
    await clock.advance(firstMs + 2_900);
    await renewal(0).answer('renewed');
    await clock.advance(heartbeatMs - 2_900);
    expect(sent).toHaveLength(2);
  });

  test('a refusal is a loss, at once', async () => {
    const { lease: a, clock, renewal, keep, over, lost } = lease(mode);
    keep();
    await clock.advance(firstMs);
    await renewal(0).answer('refused');
    expect([a.loss, lost.mock.calls.length, over.mock.calls.length]).toEqual(['refused', 1, 1]);
    expect(clock.pending).toBe(0);
  });

  test('no answer is no loss: it is tried again sooner, while the lease still runs', async () => {
    const { lease: a, clock, renewal, sent, keep, metrics } = lease(mode);
    keep();
    await clock.advance(firstMs);
    for (let tries = 0; tries < 5; tries++) {
      await renewal(tries).fail();
      await clock.advance(retryMs);
    }
    expect([a.valid(), metrics.of('RenewalsUnanswered')]).toEqual([true, 5]);
    await renewal(5).answer('renewed');
    await clock.advance(ownMs - 1);
    expect(a.valid()).toBe(true);
    // Any renewal may still arrive, so each has to lie further ahead than those before it.
    const expiries = sent.map(({ expiresAtMs }) => expiresAtMs);
    expect(expiries).toEqual([...new Set(expiries)].toSorted((x, y) => x - y));
  });

  test('without any answer ends when the lease does', async () => {
    const { lease: a, clock, sent, keep, over } = lease(mode);
    keep();
    await clock.advance(firstMs);
    for (const at of [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) {
      await sent[at]?.fail();
      await clock.advance(retryMs);
    }
    await clock.advance(ownMs);
    await sent.at(-1)?.fail();
    expect([a.loss, over.mock.calls.length]).toEqual(['expired', 1]);
  });

  test('an answer that comes when the lease is over doesn’t bring it back', async () => {
    const { lease: a, clock, renewal, keep, over } = lease(mode);
    keep();
    await clock.advance(firstMs);
    await clock.advance(ownMs);
    expect(a.loss).toBe('expired');
    await renewal(0).answer('renewed');
    await clock.advance(1);
    expect([a.valid(), a.signal.aborted, over.mock.calls.length, clock.pending]).toEqual([false, true, 1, 0]);
  });

  test('after a freeze beyond the lease sends nothing', async () => {
    const { lease: a, clock, sent, keep } = lease(mode);
    keep();
    await clock.advance(1_000);
    clock.freeze(termMs);
    await clock.advance(1_000);
    expect([sent.length, a.loss]).toEqual([0, 'expired']);
  });

  test('once the worker’s own lease is over sends nothing', async () => {
    const { lease: a, clock, sent, keep, fence, over } = lease(mode);
    keep();
    fence();
    await clock.advance(firstMs + heartbeatMs);
    expect([sent.length, a.loss, over.mock.calls.length]).toEqual([0, 'fenced', 1]);
  });

  test('has nothing on its way once it has returned', async () => {
    const { clock, renewal, keep, until, over, sent } = lease(mode);
    keep();
    await clock.advance(firstMs);
    until.abort();
    await clock.advance(1);
    expect(over).not.toHaveBeenCalled();
    await renewal(0).answer('renewed');
    expect(over).toHaveBeenCalledTimes(1);
    await clock.advance(3 * heartbeatMs);
    expect(sent).toHaveLength(1);
  });
});

describe.each(modes)('a wall clock that is set, $mode', (mode) => {
  const { heartbeatMs } = mode;
  const { ownMs, firstMs } = timesOf(mode);

  test('back by less than a heartbeat: the table is asked for what it will grant, and no more is counted on', async () => {
    const { lease: a, clock, renewal, sent, keep } = lease(mode);
    keep();
    await clock.advance(firstMs);
    await renewal(0).answer('renewed');
    const grantedUntilMs = clock.monotonic() + ownMs;
    clock.shiftWall(-3_000);
    await clock.advance(heartbeatMs);
    expect(renewal(1).expiresAtMs - renewal(0).expiresAtMs).toBe(heartbeatMs - 3_000);
    await renewal(1).answer('renewed');
    // Others see an expiry that moved by so much, so that is all that was won.
    await clock.advance(grantedUntilMs + heartbeatMs - 3_000 - clock.monotonic() - 1);
    for (const late of sent.slice(2)) await late.fail();
    expect(a.valid()).toBe(true);
    await clock.advance(1);
    expect(a.valid()).toBe(false);
  });

  test('back by an hour: the expiry still moves forward, so that it isn’t refused, and the lease ends by itself', async () => {
    const { lease: a, clock, renewal, sent, keep } = lease(mode);
    keep();
    clock.shiftWall(-3_600_000);
    for (let beat = 0; beat < 3; beat++) {
      await clock.advance(beat === 0 ? firstMs : heartbeatMs);
      await renewal(beat).answer('renewed');
    }
    const expiries = sent.map(({ expiresAtMs }) => expiresAtMs);
    expect(expiries.slice(1).map((expiry, index) => expiry - (expiries[index] ?? 0))).toEqual([1, 1]);
    await clock.advance(heartbeatMs);
    await sent[3]?.answer('renewed');
    await clock.advance(heartbeatMs);
    expect(a.loss).toBe('expired');
  });

  test('forward: nobody counts on more than the term, from before the renewal was sent', async () => {
    const { lease: a, clock, renewal, keep } = lease(mode);
    keep();
    clock.shiftWall(3_600_000);
    await clock.advance(firstMs);
    await clock.advance(2_000);
    await renewal(0).answer('renewed');
    await clock.advance(ownMs - 2_000 - 1);
    expect(a.valid()).toBe(true);
    await clock.advance(1);
    expect(a.valid()).toBe(false);
  });
});
