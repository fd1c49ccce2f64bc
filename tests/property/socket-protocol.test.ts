import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { begin, dueMs, type Event, type Rules, type State, step } from '../../worker/protocol.ts';

const rulesArbitrary: fc.Arbitrary<Rules> = fc.record({
  connectMs: fc.integer({ min: 1, max: 20_000 }),
  pingMs: fc.integer({ min: 1, max: 20_000 }),
  pongMs: fc.integer({ min: 1, max: 20_000 }),
  stableMs: fc.integer({ min: 1, max: 20_000 }),
  pauseLimitMs: fc.integer({ min: 1, max: 20_000 }),
  backoff: fc.constant({ baseMs: 500, capMs: 30_000 }),
  failuresHere: fc.integer({ min: 1, max: 12 }),
});

const verdict = fc.constantFrom(
  'retry' as const,
  'retry' as const,
  'retry' as const,
  'pause' as const,
  'final' as const,
);
const longestRestMs = 60_000;

/** What the world may do next, as far as the socket's state allows it. */
const happening = fc.record({
  kind: fc.constantFrom(
    'due',
    'due',
    'due',
    'wait',
    'heard',
    'open',
    'close',
    'refuse',
    'pause',
    'resume',
    'impossible',
  ),
  waitMs: fc.integer({ min: 0, max: 30_000 }),
  verdict,
  retryAfterMs: fc.option(fc.integer({ min: 0, max: longestRestMs }), { nil: undefined }),
  random: fc.double({ min: 0, max: 0.999_999, noNaN: true }),
});
type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;

/** A socket as the driver keeps it: one at a time, with the events that the one it has may send. */
class World {
  state: State;
  atMs = 0;
  heardMs = 0;
  socket: 'none' | 'connecting' | 'open' = 'none';
  readonly rules: Rules;

  constructor(rules: Rules, attempts: number) {
    this.rules = rules;
    this.state = begin(attempts, 0);
  }

  happen(what: Happening): void {
    const event = this.#eventOf(what);
    if (event) this.tell(event, what.random);
  }

  tell(event: Event, random: number): void {
    const before = this.state;
    const { state, actions } = step(before, event, { atMs: this.atMs, random }, this.rules);
    this.state = state;
    if (before.name === 'ended') expect({ state, actions }).toEqual({ state: before, actions: [] });
    for (const action of actions) {
      if (action.do === 'dial') {
        expect(this.socket).toBe('none');
        this.socket = 'connecting';
      }
      if (action.do === 'ping') expect(this.socket).toBe('open');
      if (action.do === 'terminate') {
        expect(this.socket).not.toBe('none');
        this.socket = 'none';
      }
    }
    if (state.name === 'waiting' || state.name === 'ended') expect(this.socket).toBe('none');
    if (state.name === 'open') expect(this.socket).toBe('open');
    this.#checkWait(before, event);
    this.#checkFailures(before, event);
  }

  #checkWait(before: State, event: Event): void {
    if (this.state.name !== 'waiting' || this.state === before) return;
    const { capMs } = this.rules.backoff;
    const pauses = 'verdict' in event && event.verdict === 'pause';
    const restMs = pauses ? (('retryAfterMs' in event ? event.retryAfterMs : undefined) ?? capMs) : 0;
    expect(this.state.untilMs).toBeGreaterThanOrEqual(this.atMs + restMs);
    expect(this.state.untilMs).toBeLessThanOrEqual(this.atMs + restMs + capMs);
  }

  #checkFailures(before: State, event: Event): void {
    if (before.name === 'ended' || this.state.name === 'ended') return;
    const fewer =
      this.state.failures.inARow < before.failures.inARow || this.state.failures.here < before.failures.here;
    if (!fewer) return;
    expect(event.type).toBe('due');
    expect(before.name === 'open' && this.atMs - before.sinceMs >= this.rules.stableMs).toBe(true);
  }

  #eventOf({ kind, waitMs, verdict, retryAfterMs }: Happening): Event | undefined {
    switch (kind) {
      case 'due':
        this.atMs = Math.max(this.atMs, dueMs(this.state, this.heardMs, this.rules) ?? this.atMs);
        return { type: 'due', heardMs: this.heardMs };
      case 'wait':
        this.atMs += waitMs;
        return { type: 'due', heardMs: this.heardMs };
      case 'heard':
        if (this.socket === 'open') this.heardMs = this.atMs;
        return undefined;
      case 'open':
        if (this.socket !== 'connecting') return undefined;
        this.socket = 'open';
        this.heardMs = this.atMs;
        return { type: 'opened' };
      case 'close':
        if (this.socket === 'none') return undefined;
        this.socket = 'none';
        return { type: 'closed', verdict, reason: 'closed' };
      case 'refuse':
        if (this.socket !== 'connecting') return undefined;
        this.socket = 'none';
        return { type: 'refused', verdict, reason: 'refused', retryAfterMs };
      case 'pause':
        return this.socket === 'open' ? { type: 'paused' } : undefined;
      case 'resume':
        return { type: 'resumed', heardMs: this.heardMs };
      case 'impossible':
        if (this.socket !== 'connecting') return undefined;
        this.socket = 'none';
        return { type: 'impossible', reason: 'impossible' };
    }
  }
}

const attemptsArbitrary = fc.integer({ min: 0, max: 40 });
const story = fc.array(happening, { minLength: 1, maxLength: 80 });

describe('a socket, whatever happens to it', () => {
  test('never dials while it has a socket, waits no longer than allowed, ends for good, forgets failures only when stable', () => {
    fc.assert(
      fc.property(rulesArbitrary, attemptsArbitrary, story, (rules, attempts, happenings) => {
        const world = new World(rules, attempts);
        for (const what of happenings) world.happen(what);
      }),
      { numRuns: 500 },
    );
  });

  test('that falls silent is dropped within one ping and its answer time, or the longest pause', () => {
    fc.assert(
      fc.property(rulesArbitrary, story, (rules, happenings) => {
        const world = new World(rules, 0);
        for (const what of happenings) world.happen(what);
        if (world.state.name !== 'open') return;
        const silentSinceMs = world.atMs;
        const boundMs =
          world.state.pausedMs === undefined ? rules.pingMs + rules.pongMs : Math.max(0, rules.pauseLimitMs);
        while (world.state.name === 'open') {
          world.atMs = Math.max(world.atMs, dueMs(world.state, world.heardMs, rules) ?? 0);
          expect(world.atMs).toBeLessThanOrEqual(silentSinceMs + boundMs);
          world.tell({ type: 'due', heardMs: world.heardMs }, 0.5);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('never asks to be called again at once without having got any further', () => {
    fc.assert(
      fc.property(rulesArbitrary, story, (rules, happenings) => {
        const world = new World(rules, 0);
        for (const what of happenings) world.happen(what);
        // Called exactly when it asks to be: a few steps may fall on the same millisecond, but not any number.
        let sameMoment = 0;
        for (let calls = 0; calls < 50; calls++) {
          const due = dueMs(world.state, world.heardMs, rules);
          if (due === undefined) return;
          sameMoment = due <= world.atMs ? sameMoment + 1 : 0;
          expect(sameMoment).toBeLessThanOrEqual(4);
          world.atMs = Math.max(world.atMs, due);
          world.tell({ type: 'due', heardMs: world.heardMs }, 0.5);
        }
      }),
      { numRuns: 300 },
    );
  });
});
