import { describe, expect, jest, test } from '@jest/globals';
import type { Queue, Received } from '../../../shared/queue.ts';
import type { Context } from '../../../worker/context.ts';
import { Holdings } from '../../../worker/holdings.ts';
import { follow, receiveWakeUps } from '../../../worker/wakeups.ts';
import { settled, VirtualClock } from '../../support/virtual-clock.ts';
import { contextOf, livingPresence } from '../../support/worker-parts.ts';

function received(wakeUp: Received['wakeUp'] = { pk: 'CONN#a' }) {
  return { wakeUp, done: jest.fn(() => Promise.resolve()), back: jest.fn(() => Promise.resolve()) };
}

/** Holdings that answer `take` as told. */
function holdingsThat(outcome: 'settled' | 'unanswered' | 'no-room') {
  const { context, log, metrics } = contextOf({});
  const holdings = new Holdings(context);
  const take = jest.spyOn(holdings, 'take').mockResolvedValue(outcome);
  return { context, holdings, take, log, metrics };
}

describe('following a wake-up', () => {
  test.each([
    ['settled', 1, 0],
    ['unanswered', 0, 0],
    ['no-room', 0, 1],
  ] as const)('%s: forgotten %i times, given back %i times', async (outcome, done, back) => {
    const { context, holdings } = holdingsThat(outcome);
    const hint = received();
    await follow(context, holdings, hint);
    expect([hint.done.mock.calls.length, hint.back.mock.calls.length]).toEqual([done, back]);
  });

  test('one that can’t be read is left for the dead letters, and counted', async () => {
    const { context, holdings, take, log, metrics } = holdingsThat('settled');
    const hint = { ...received(), wakeUp: undefined };
    await follow(context, holdings, hint);
    expect([hint.done.mock.calls.length, hint.back.mock.calls.length, take.mock.calls.length]).toEqual([0, 0, 0]);
    expect([metrics.of('BadWakeUps'), log.lines[0]?.event]).toEqual([1, 'wakeup.unreadable']);
  });

  test('that can’t be acknowledged isn’t an error: it comes again', async () => {
    const { context, holdings, metrics } = holdingsThat('settled');
    const hint = { ...received(), done: () => Promise.reject(new Error('away')) };
    await follow(context, holdings, hint);
    expect(metrics.of('QueueFaults')).toBe(1);
  });

  test('of a worker that is going is given back', async () => {
    const { context } = contextOf({});
    const holdings = new Holdings(context);
    await holdings.drain();
    const hint = received();
    await follow(context, holdings, hint);
    expect([hint.done.mock.calls.length, hint.back.mock.calls.length]).toEqual([0, 1]);
  });
});

describe('receiving wake-ups', () => {
  /** A queue whose polls the test answers. */
  function polled(
    env: Record<string, string> = {},
    given: Partial<Pick<Context, 'presence'>> & { clock?: VirtualClock } = {},
  ) {
    const polls: { most: number; answer(received: Received[]): void; fail(): void }[] = [];
    const queue: Queue = {
      receive: (most) =>
        new Promise((resolve, reject) => polls.push({ most, answer: resolve, fail: () => reject(new Error('away')) })),
      send: () => Promise.resolve(),
      depth: () => Promise.resolve(0),
    };
    const { clock = new VirtualClock() } = given;
    const { context, metrics } = contextOf({ queue, env, ...given, clock });
    const holdings = new Holdings(context);
    const stop = new AbortController();
    const got: Received[] = [];
    const reading = (async () => {
      for await (const hint of receiveWakeUps(context, holdings, stop.signal)) got.push(hint);
    })();
    return { polls, clock, metrics, holdings, stop, got, reading };
  }

  test('asks for no more than there is room for', async () => {
    const { polls, stop, reading } = polled({ MAX_CONNECTIONS: '3' });
    await settled();
    expect(polls.map(({ most }) => most)).toEqual([3]);
    stop.abort();
    polls[0]?.answer([]);
    await reading;
  });

  test('the last poll is waited for, and what it brings is passed on', async () => {
    const { polls, stop, got, reading } = polled();
    await settled();
    stop.abort();
    polls[0]?.answer([received()]);
    await reading;
    expect([got.length, polls.length]).toEqual([1, 1]);
  });

  test('a queue that is away is asked again, not at once, and ever less often', async () => {
    const { polls, clock, metrics, stop, reading } = polled();
    await settled();
    const waits: number[] = [];
    for (let failures = 0; failures < 8; failures++) {
      polls[failures]?.fail();
      await settled();
      waits.push((clock.nextDueMs ?? 0) - clock.monotonic());
      await clock.advance(waits.at(-1) ?? 0);
    }
    expect(waits).toEqual([300, 400, 600, 1_000, 1_800, 2_700, 2_700, 2_700]);
    expect(metrics.of('QueueFaults')).toBe(8);
    stop.abort();
    polls.at(-1)?.answer([]);
    await reading;
  });

  test('a full worker doesn’t ask at all', async () => {
    const { context } = contextOf({ env: { MAX_CONNECTIONS: '1' }, clock: new VirtualClock() });
    const holdings = new Holdings(context);
    jest.spyOn(holdings, 'room', 'get').mockReturnValue(0);
    const stop = new AbortController();
    const next = receiveWakeUps(context, holdings, stop.signal).next();
    await settled();
    stop.abort();
    // The queue of this context throws when it is used.
    expect(await next).toEqual({ done: true, value: undefined });
  });

  test('asks again once the worker’s own lease has been renewed at last, although nobody says so', async () => {
    const clock = new VirtualClock();
    const { presence, mayClaim } = livingPresence('w-me');
    mayClaim(false);
    const { polls, stop, reading } = polled({}, { clock, presence });
    await clock.advance(1_000);
    expect(polls).toEqual([]);
    mayClaim(true);
    await clock.advance(5_000);
    expect(polls).toHaveLength(1);
    stop.abort();
    polls[0]?.answer([]);
    await reading;
  });

  test('never asks for none: a place that came free is no room while the worker is fenced', async () => {
    const clock = new VirtualClock();
    const { presence, fence } = livingPresence('w-me');
    const { polls, holdings, stop, reading } = polled({}, { clock, presence });
    await settled();
    fence();
    polls[0]?.answer([]);
    await settled();
    holdings.reopened();
    await clock.advance(20_000);
    expect(polls).toHaveLength(1);
    stop.abort();
    await reading;
  });
});
