import { Heap } from './heap.ts';
import type { Host } from './host.ts';
import type { Random } from './random.ts';
import type { Trace } from './trace.ts';

/**
 * Something that will happen. What belongs to a host waits while that host is frozen, and never happens when it is dead.
 * - timer     a host's own timer
 * - delivery  something arrives at a host: an answer, a frame, a closed socket
 */
export type Happening = {
  atMs: number;
  order: number;
  host: Host | undefined;
  kind: 'timer' | 'delivery';
  run: () => void;
  cancelled: boolean;
};

/** Below come the numbers for what has to keep its order among what happens in the same millisecond. */
const firstRandomOrder = 2 ** 20;
/** Node runs all microtasks between two immediates, so each of these is one step; the event loop turns once per batch. */
const batch = 128;

/** Virtual time. The only thing that makes anything happen; one at a time, and all microtasks end before the next. */
export class Scheduler {
  nowMs = 0;
  steps = 0;
  readonly trace: Trace;
  readonly #random: Random;
  readonly #heap = new Heap<Happening>();
  #orders = 0;

  constructor(random: Random, trace: Trace) {
    this.#random = random;
    this.trace = trace;
  }

  /** What falls on the same millisecond comes in random order. */
  at(atMs: number, run: () => void, host?: Host, kind: 'timer' | 'delivery' = 'delivery'): Happening {
    const order = firstRandomOrder + this.#random.bits();
    return this.#push({ atMs: Math.max(atMs, this.nowMs), order, host, kind, run, cancelled: false });
  }

  after(ms: number, run: () => void, host?: Host, kind?: 'timer' | 'delivery'): Happening {
    return this.at(this.nowMs + ms, run, host, kind);
  }

  /** Happens now, before anything else of this millisecond, in the order in which it was put here. */
  next(happening: Happening): void {
    // The same object: whoever started it may still cancel it.
    happening.atMs = this.nowMs;
    happening.order = this.#orders++;
    this.#push(happening);
  }

  note(what: string, detail?: () => string): void {
    this.trace.note(this.nowMs, what, detail);
  }

  /**
   * Runs until `isOver` says so, or nothing is left to happen.
   * @param isOver asked after each step, when everything that follows from it has been done
   */
  run(isOver: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let queued = 0;
      let done = false;
      const refill = () => {
        queued = batch;
        for (let count = 0; count < batch; count++) setImmediate(turn);
      };
      const turn = () => {
        queued--;
        try {
          if (!done) done = isOver() || !this.#step();
        } catch (fault) {
          done = true;
          reject(fault instanceof Error ? fault : new Error(String(fault)));
        }
        if (queued > 0) return;
        if (done) resolve();
        else refill();
      };
      refill();
    });
  }

  #push(happening: Happening): Happening {
    this.#heap.push(happening);
    return happening;
  }

  /** @returns whether anything happened */
  #step(): boolean {
    for (;;) {
      const happening = this.#heap.pop();
      if (!happening) return false;
      if (happening.cancelled) continue;
      this.nowMs = happening.atMs;
      if (happening.host && !happening.host.mayRun(happening)) continue;
      this.steps++;
      // So that nobody cancels what has happened, and a repeated `run` is seen.
      happening.cancelled = true;
      happening.run();
      return true;
    }
  }
}
