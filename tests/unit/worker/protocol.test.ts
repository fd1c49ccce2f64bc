import { describe, expect, test } from '@jest/globals';
import { begin, dueMs, type Event, type Rules, type State, step } from '../../../worker/protocol.ts';

const rules: Rules = {
  connectMs: 10_000,
  pingMs: 15_000,
  pongMs: 5_000,
  stableMs: 8_000,
  pauseLimitMs: 20_000,
  backoff: { baseMs: 500, capMs: 30_000 },
  failuresHere: 10,
};

const failures = { inARow: 0, here: 0 };
const dialling: State = { name: 'dialling', sinceMs: 0, failures };
const openState = (change: Partial<Extract<State, { name: 'open' }>> = {}): State => ({
  name: 'open',
  sinceMs: 0,
  pingedMs: 0,
  pausedMs: undefined,
  stable: true,
  failures,
  ...change,
});
const closed = (verdict: 'retry' | 'pause' | 'final' = 'retry'): Event => ({ type: 'closed', verdict, reason: 'why' });
const at = (state: State, event: Event, atMs: number, random = 0.5, by: Rules = rules) =>
  step(state, event, { atMs, random }, by);

describe('waiting', () => {
  test('dials when the time has come, and not before', () => {
    const waiting: State = { name: 'waiting', untilMs: 700, failures };
    expect(dueMs(waiting, 0, rules)).toBe(700);
    expect(at(waiting, { type: 'due', heardMs: 0 }, 699)).toEqual({ state: waiting, actions: [] });
    expect(at(waiting, { type: 'due', heardMs: 0 }, 700)).toEqual({
      state: { name: 'queued', failures },
      actions: [{ do: 'dial' }],
    });
  });

  test('in the queue no deadline runs: it isn’t the source that is slow', () => {
    const queued: State = { name: 'queued', failures };
    expect(dueMs(queued, 0, rules)).toBeUndefined();
    expect(at(queued, { type: 'began' }, 60_000)).toEqual({
      state: { name: 'dialling', sinceMs: 60_000, failures },
      actions: [],
    });
  });

  test('begins at once, with the failures that others had', () => {
    expect(begin(4, 123)).toEqual({ name: 'waiting', untilMs: 123, failures: { inARow: 4, here: 0 } });
  });

  test.each<Event>([{ type: 'opened' }, { type: 'paused' }, { type: 'resumed', heardMs: 0 }])(
    'ignores a late $type',
    (event) => {
      const waiting: State = { name: 'waiting', untilMs: 700, failures };
      expect(at(waiting, event, 10)).toEqual({ state: waiting, actions: [] });
    },
  );
});

describe('dialling', () => {
  test('opens', () => {
    expect(at(dialling, { type: 'opened' }, 30)).toEqual({
      state: openState({ sinceMs: 30, pingedMs: 30, stable: false }),
      actions: [{ do: 'report', status: 'OPEN' }],
    });
  });

  test('after failures, opening is not yet worth a report', () => {
    const again: State = { name: 'dialling', sinceMs: 0, failures: { inARow: 2, here: 2 } };
    const { state, actions } = at(again, { type: 'opened' }, 30);
    expect(actions).toEqual([]);
    expect(state).toMatchObject({ name: 'open', stable: false, failures: { inARow: 2, here: 2 } });
  });

  test('has a deadline of its own', () => {
    expect(dueMs(dialling, 9_999, rules)).toBe(10_000);
    const { state, actions } = at(dialling, { type: 'due', heardMs: 0 }, 10_000, 0);
    expect(state).toEqual({ name: 'waiting', untilMs: 10_000, failures: { inARow: 1, here: 1 } });
    expect(actions).toEqual([
      { do: 'terminate' },
      { do: 'report', status: 'RETRYING', reason: 'not open in time', attempts: 1 },
    ]);
  });

  test.each([
    ['no Retry-After: the longest backoff', undefined, 30_250],
    ['as long as it says', 3_000, 3_250],
  ])('a pause, %s', (_, retryAfterMs, untilMs) => {
    const refused: Event = { type: 'refused', verdict: 'pause', reason: 'why', retryAfterMs };
    expect(at(dialling, refused, 0).state).toMatchObject({ name: 'waiting', untilMs });
  });

  test('a final refusal ends it, and says how often it was tried', () => {
    const again: State = { name: 'dialling', sinceMs: 0, failures: { inARow: 2, here: 1 } };
    const refused: Event = { type: 'refused', verdict: 'final', reason: 'HTTP 403', retryAfterMs: undefined };
    expect(at(again, refused, 5)).toEqual({
      state: { name: 'ended' },
      actions: [{ do: 'end', end: 'failed', reason: 'HTTP 403', attempts: 3 }],
    });
  });

  test('what can never be dialled ends it', () => {
    expect(at(dialling, { type: 'impossible', reason: 'private' }, 5)).toEqual({
      state: { name: 'ended' },
      actions: [{ do: 'end', end: 'failed', reason: 'private', attempts: 1 }],
    });
  });
});

describe('open', () => {
  test('is stable after it has lasted, and only then are failures forgotten and is it reported', () => {
    const young = openState({ stable: false, failures: { inARow: 3, here: 2 } });
    expect(dueMs(young, 7_000, rules)).toBe(8_000);
    expect(at(young, { type: 'due', heardMs: 7_000 }, 7_999).state).toEqual(young);
    expect(at(young, { type: 'due', heardMs: 7_000 }, 8_000)).toEqual({
      state: { ...young, stable: true, failures: { inARow: 0, here: 0 } },
      actions: [{ do: 'report', status: 'OPEN' }],
    });
  });

  test('what closes before that counts on', () => {
    const young = openState({ stable: false, failures: { inARow: 3, here: 2 } });
    expect(at(young, closed(), 7_999, 0)).toEqual({
      state: { name: 'waiting', untilMs: 7_999, failures: { inARow: 4, here: 3 } },
      actions: [{ do: 'report', status: 'RETRYING', reason: 'why', attempts: 4 }],
    });
  });

  test('pings only after a silence', () => {
    expect(dueMs(openState(), 4_000, rules)).toBe(19_000);
    expect(at(openState(), { type: 'due', heardMs: 4_000 }, 18_999).actions).toEqual([]);
    const { state, actions } = at(openState(), { type: 'due', heardMs: 4_000 }, 19_000);
    expect(actions).toEqual([{ do: 'ping' }]);
    expect(dueMs(state, 4_000, rules)).toBe(24_000);
  });

  test('a ping that nothing answers drops it', () => {
    const pinged = openState({ pingedMs: 19_000 });
    const { state, actions } = at(pinged, { type: 'due', heardMs: 4_000 }, 24_000, 0);
    expect(actions).toEqual([
      { do: 'terminate' },
      { do: 'report', status: 'RETRYING', reason: 'silent: no answer to a ping', attempts: 1 },
    ]);
    expect(state.name).toBe('waiting');
  });

  test('anything that was heard answers a ping', () => {
    const pinged = openState({ pingedMs: 19_000 });
    expect(at(pinged, { type: 'due', heardMs: 19_500 }, 24_000)).toEqual({ state: pinged, actions: [] });
    expect(dueMs(pinged, 19_500, rules)).toBe(34_500);
  });

  test('a paused one is not blamed for its silence, but not left paused for ever', () => {
    const { state: paused } = at(openState(), { type: 'paused' }, 1_000);
    expect(at(paused, { type: 'paused' }, 5_000).state).toEqual(paused);
    expect(dueMs(paused, 0, rules)).toBe(21_000);
    expect(at(paused, { type: 'due', heardMs: 0 }, 20_999).actions).toEqual([]);
    expect(at(paused, { type: 'due', heardMs: 0 }, 21_000, 0).actions[0]).toEqual({ do: 'terminate' });
  });

  test('resumed after a moment, it isn’t asked anything', () => {
    const { state: paused } = at(openState(), { type: 'paused' }, 1_000);
    expect(at(paused, { type: 'resumed', heardMs: 900 }, 3_000)).toEqual({ state: openState(), actions: [] });
  });

  test('resumed while a ping waits for its answer, it is asked again, and has the whole time to answer', () => {
    const { state: paused } = at(openState({ pingedMs: 15_000 }), { type: 'paused' }, 16_000);
    const { state, actions } = at(paused, { type: 'resumed', heardMs: 900 }, 22_000);
    expect(actions).toEqual([{ do: 'ping' }]);
    expect(dueMs(state, 900, rules)).toBe(27_000);
  });

  test('resumed after a long silence, it is asked whether it is still there', () => {
    const { state: paused } = at(openState(), { type: 'paused' }, 1_000);
    const { state, actions } = at(paused, { type: 'resumed', heardMs: 500 }, 18_000);
    expect(actions).toEqual([{ do: 'ping' }]);
    expect(dueMs(state, 500, rules)).toBe(23_000);
    expect(at(state, { type: 'resumed', heardMs: 0 }, 18_500)).toEqual({ state, actions: [] });
  });

  test('a final close code ends it', () => {
    expect(at(openState(), closed('final'), 9_000).actions).toEqual([
      { do: 'end', end: 'failed', reason: 'why', attempts: 1 },
    ]);
  });
});

describe('too many failures', () => {
  const last = { ...rules, failuresHere: 3 };

  test('here: another worker shall try, after the wait that was due', () => {
    const twice: State = { name: 'dialling', sinceMs: 0, failures: { inARow: 5, here: 2 } };
    expect(at(twice, closed(), 100, 0.5, last)).toEqual({
      state: { name: 'ended' },
      actions: [{ do: 'end', end: 'exhausted', reason: 'why', attempts: 6, waitMs: 8_000 }],
    });
  });

  test('elsewhere count for the backoff only', () => {
    const { state } = at({ name: 'dialling', sinceMs: 0, failures: { inARow: 9, here: 0 } }, closed(), 0, 0.5, last);
    expect(state).toMatchObject({ name: 'waiting', untilMs: 15_000 });
  });
});

describe('ended', () => {
  test.each<Event>([
    { type: 'due', heardMs: 0 },
    { type: 'opened' },
    { type: 'paused' },
    { type: 'resumed', heardMs: 0 },
    { type: 'impossible', reason: 'why' },
    closed(),
  ])('is for good: $type', (event) => {
    expect(at({ name: 'ended' }, event, 99_000)).toEqual({ state: { name: 'ended' }, actions: [] });
    expect(dueMs({ name: 'ended' }, 0, rules)).toBeUndefined();
  });
});

describe('full jitter', () => {
  test.each([
    [1, 0, 0],
    [1, 0.999_999, 499],
    [2, 0.999_999, 999],
    [3, 0.5, 1_000],
    [7, 0.999_999, 29_999],
    [60, 0.999_999, 29_999],
  ])('after %i failures, at %d of the range', (inARow, random, waitMs) => {
    const before: State = { name: 'dialling', sinceMs: 0, failures: { inARow: inARow - 1, here: 0 } };
    expect(at(before, closed(), 0, random).state).toMatchObject({ name: 'waiting', untilMs: waitMs });
  });
});
