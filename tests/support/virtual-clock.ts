/** Time that stands still until a test moves it. */
import type { Clock, Timer } from '../../shared/clock.ts';

type Pending = { dueMs: number; order: number; run: () => void };

const startsAtMs = 1_700_000_000_000;

export class VirtualClock implements Clock {
  readonly #pending = new Set<Pending>();
  #monotonicMs = 0;
  #wallMs: number;
  #order = 0;

  /** @param wallMs what the wall clock shows at first, Unix ms */
  constructor(wallMs = startsAtMs) {
    this.#wallMs = wallMs;
  }

  now(): number {
    return this.#wallMs;
  }

  monotonic(): number {
    return this.#monotonicMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        timer.cancel();
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = this.timer(ms, done);
      signal?.addEventListener('abort', done);
    });
  }

  timer(ms: number, fn: () => void): Timer {
    const pending = { dueMs: this.#monotonicMs + Math.max(0, ms), order: this.#order++, run: fn };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** How many timers and sleeps there are. */
  get pending(): number {
    return this.#pending.size;
  }

  /** When the next of them is due, monotonic ms. */
  get nextDueMs(): number | undefined {
    return this.#next(Number.POSITIVE_INFINITY)?.dueMs;
  }

  /** Lets `ms` pass. What falls due runs in order, each at its own time, with all that follows from it before the next. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#monotonicMs + ms;
    await settled();
    for (let next = this.#next(endMs); next; next = this.#next(endMs)) {
      this.#pass(Math.max(0, next.dueMs - this.#monotonicMs));
      this.#pending.delete(next);
      next.run();
      await settled();
    }
    this.#pass(endMs - this.#monotonicMs);
    await settled();
  }

  /** The process is stopped for `ms`: time passes and nothing runs. What fell due meanwhile runs at the next `advance`. */
  freeze(ms: number): void {
    this.#pass(ms);
  }

  /** Somebody, or NTP, sets the wall clock; negative: back. */
  shiftWall(ms: number): void {
    this.#wallMs += ms;
  }

  #pass(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }

  #next(untilMs: number): Pending | undefined {
    let next: Pending | undefined;
    for (const pending of this.#pending) {
      if (pending.dueMs > untilMs) continue;
      if (!next || pending.dueMs < next.dueMs || (pending.dueMs === next.dueMs && pending.order < next.order))
        next = pending;
    }
    return next;
  }
}

/** Resolves when everything that can go on without time or I/O has gone on. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
