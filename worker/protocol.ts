import { type Backoff, fullJitterMs } from '../shared/backoff.ts';
import type { Verdict } from '../shared/source.ts';

/**
 * The life of one socket to a source, as pure rules: (state, event) -> (state, actions). All times are monotonic ms.
 *
 *   waiting ──due──> queued ──began──> dialling ──opened──> open ──stayed open──> open, stable
 *      ^                                  │ refused, failed     │ closed, silent, paused too long
 *      └──────────────────────────────────┴─────────────────────┘      final, or too often here ──> ended
 */
export type State =
  /** Until the next try is due. */
  | { name: 'waiting'; untilMs: number; failures: Failures }
  /** Due, but many dial at once: waits for its turn. That isn't the source's fault, so no deadline runs. */
  | { name: 'queued'; failures: Failures }
  /** From the dial to the open socket, with a deadline of its own. */
  | { name: 'dialling'; sinceMs: number; failures: Failures }
  /** Open isn't success until it has lasted: only then are the failures forgotten. */
  | {
      name: 'open';
      sinceMs: number;
      pingedMs: number;
      pausedMs: number | undefined;
      stable: boolean;
      failures: Failures;
    }
  /** For good. */
  | { name: 'ended' };

/** Failures in a row: in all (it sets the backoff), and on this worker (too many: another shall try). */
type Failures = { inARow: number; here: number };

export type Event =
  /** The time that `dueMs` named has come. `heardMs`: when the source last sent anything. */
  | { type: 'due'; heardMs: number }
  /** Its turn has come: the dial begins now. */
  | { type: 'began' }
  | { type: 'opened' }
  | { type: 'paused' }
  | { type: 'resumed'; heardMs: number }
  | { type: 'closed'; verdict: Verdict; reason: string }
  | { type: 'refused'; verdict: Verdict; reason: string; retryAfterMs: number | undefined }
  /** No dial can succeed: the URL or the address itself is the trouble. */
  | { type: 'impossible'; reason: string };

export type Action =
  | { do: 'dial' }
  | { do: 'ping' }
  | { do: 'terminate' }
  | { do: 'report'; status: 'OPEN' }
  | { do: 'report'; status: 'RETRYING'; reason: string; attempts: number }
  | { do: 'end'; end: 'failed'; reason: string; attempts: number }
  | { do: 'end'; end: 'exhausted'; reason: string; attempts: number; waitMs: number };

export type Rules = {
  connectMs: number;
  pingMs: number;
  pongMs: number;
  stableMs: number;
  pauseLimitMs: number;
  backoff: Backoff;
  failuresHere: number;
};

export type Moment = { atMs: number; random: number };

type Step = { state: State; actions: Action[] };

/** @param attempts failures in a row that other workers had before */
export function begin(attempts: number, atMs: number): State {
  return { name: 'waiting', untilMs: atMs, failures: { inARow: attempts, here: 0 } };
}

/** Monotonic ms at which the state wants a `due` event. @returns undefined: never */
export function dueMs(state: State, heardMs: number, rules: Rules): number | undefined {
  switch (state.name) {
    case 'waiting':
      return state.untilMs;
    case 'queued':
      return undefined;
    case 'dialling':
      return state.sinceMs + rules.connectMs;
    case 'open': {
      if (state.pausedMs !== undefined) return state.pausedMs + rules.pauseLimitMs;
      const nextMs = awaitsPong(state, heardMs)
        ? state.pingedMs + rules.pongMs
        : Math.max(state.pingedMs, heardMs) + rules.pingMs;
      return state.stable ? nextMs : Math.min(nextMs, state.sinceMs + rules.stableMs);
    }
    case 'ended':
      return undefined;
  }
}

export function step(state: State, event: Event, { atMs, random }: Moment, rules: Rules): Step {
  if (state.name === 'ended') return stay(state);
  switch (event.type) {
    case 'due':
      return due(state, event.heardMs, { atMs, random }, rules);
    case 'began':
      return state.name === 'queued'
        ? stay({ name: 'dialling', sinceMs: atMs, failures: state.failures })
        : stay(state);
    case 'opened':
      return state.name === 'dialling' ? opened(state, atMs) : stay(state);
    case 'paused':
      return state.name === 'open' ? stay({ ...state, pausedMs: state.pausedMs ?? atMs }) : stay(state);
    case 'resumed':
      return resumed(state, event.heardMs, atMs, rules);
    case 'closed':
      return failed(state, event, { atMs, random }, rules);
    case 'refused':
      return failed(state, event, { atMs, random }, rules);
    case 'impossible':
      return end(state, event.reason);
  }
}

function due(state: Exclude<State, { name: 'ended' }>, heardMs: number, moment: Moment, rules: Rules): Step {
  const { atMs } = moment;
  const at = dueMs(state, heardMs, rules);
  if (at === undefined || atMs < at) return stay(state);
  switch (state.name) {
    case 'waiting':
      return { state: { name: 'queued', failures: state.failures }, actions: [{ do: 'dial' }] };
    case 'queued':
      return stay(state);
    case 'dialling':
      return drop(state, 'not open in time', moment, rules);
    case 'open':
      if (state.pausedMs !== undefined) return drop(state, 'paused too long: the table took too little', moment, rules);
      if (!state.stable && atMs >= state.sinceMs + rules.stableMs) return stable(state);
      if (awaitsPong(state, heardMs)) return drop(state, 'silent: no answer to a ping', moment, rules);
      return { state: { ...state, pingedMs: atMs }, actions: [{ do: 'ping' }] };
  }
}

/** What came while it was paused wasn't heard: a ping that waits for its answer, or a long silence, begins anew. */
function resumed(state: Exclude<State, { name: 'ended' }>, heardMs: number, atMs: number, rules: Rules): Step {
  if (state.name !== 'open' || state.pausedMs === undefined) return stay(state);
  const open = { ...state, pausedMs: undefined };
  const silent = atMs - Math.max(heardMs, state.pingedMs) >= rules.pingMs;
  if (!silent && !awaitsPong(state, heardMs)) return stay(open);
  return { state: { ...open, pingedMs: atMs }, actions: [{ do: 'ping' }] };
}

/** A ping went out, and nothing came since. The opening counts as a ping that was answered. */
function awaitsPong(state: { pingedMs: number; sinceMs: number }, heardMs: number): boolean {
  return state.pingedMs > state.sinceMs && heardMs < state.pingedMs;
}

function opened(state: { failures: Failures }, atMs: number): Step {
  const open = {
    name: 'open',
    sinceMs: atMs,
    pingedMs: atMs,
    pausedMs: undefined,
    stable: false,
    failures: state.failures,
  } as const;
  // One that keeps opening and closing isn't reported as open each time.
  return { state: open, actions: state.failures.inARow === 0 ? [{ do: 'report', status: 'OPEN' }] : [] };
}

function stable(state: Extract<State, { name: 'open' }>): Step {
  const actions: Action[] = state.failures.inARow === 0 ? [] : [{ do: 'report', status: 'OPEN' }];
  return { state: { ...state, stable: true, failures: { inARow: 0, here: 0 } }, actions };
}

function drop(state: { failures: Failures }, reason: string, moment: Moment, rules: Rules): Step {
  const { state: next, actions } = failed(state, { verdict: 'retry', reason }, moment, rules);
  return { state: next, actions: [{ do: 'terminate' }, ...actions] };
}

/** Why it ended decides what happens next, here and nowhere else. */
function failed(
  state: { failures: Failures },
  event: { verdict: Verdict; reason: string; retryAfterMs?: number | undefined },
  { atMs, random }: Moment,
  rules: Rules,
): Step {
  if (event.verdict === 'final') return end(state, event.reason);
  const inARow = state.failures.inARow + 1;
  const here = state.failures.here + 1;
  const jitterMs = fullJitterMs(rules.backoff, inARow, random);
  const waitMs = event.verdict === 'pause' ? (event.retryAfterMs ?? rules.backoff.capMs) + jitterMs : jitterMs;
  if (here >= rules.failuresHere) {
    return {
      state: { name: 'ended' },
      actions: [{ do: 'end', end: 'exhausted', reason: event.reason, attempts: inARow, waitMs }],
    };
  }
  return {
    state: { name: 'waiting', untilMs: atMs + waitMs, failures: { inARow, here } },
    actions: [{ do: 'report', status: 'RETRYING', reason: event.reason, attempts: inARow }],
  };
}

function end(state: { failures: Failures }, reason: string): Step {
  const attempts = state.failures.inARow + 1;
  return { state: { name: 'ended' }, actions: [{ do: 'end', end: 'failed', reason, attempts }] };
}

const stay = (state: State): Step => ({ state, actions: [] });
