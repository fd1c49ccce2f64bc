/** Time that goes as fast as the machine can: nothing happens between two things that are due. */
import type { Clock } from '../../shared/clock.ts';
import { Heap } from '../../tests/simulation/harness/heap.ts';

/** A process. When it is dead, nothing that it was waiting for happens. */
export type Host = { name: string; alive: boolean };

type Due = { atMs: number; order: number; run: () => void; host: Host | undefined; cancelled: boolean };

const beginMs = 1_790_000_000_000;

export class Time {
  nowMs = 0;
  readonly #heap = new Heap<Due>();
  #order = 0;

  /** Whole milliseconds, so that much falls together and is gone through in one turn. */
  after(ms: number, run: () => void, host?: Host): Due {
    const atMs = this.nowMs + Math.max(0, Math.ceil(ms));
    const due = { atMs, order: this.#order++, run, host, cancelled: false };
    this.#heap.push(due);
    return due;
  }

  /** Resolves after `ms`, whoever is alive by then. */
  pass(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** Lets time go on until `isOver`, which is asked once for each millisecond in which anything happened. */
  async run(isOver: () => boolean): Promise<void> {
    await drained();
    while (!isOver()) {
      const next = this.#heap.first;
      if (!next) throw new Error('nothing is left to happen');
      this.nowMs = Math.max(this.nowMs, next.atMs);
      for (let due = this.#heap.first; due && due.atMs <= this.nowMs; due = this.#heap.first) {
        this.#heap.pop();
        if (due.cancelled || due.host?.alive === false) continue;
        due.run();
      }
      await drained();
    }
  }

  runFor(ms: number): Promise<void> {
    let over = false;
    this.after(ms, () => {
      over = true;
    });
    return this.run(() => over);
  }

  /** The clock that one process sees. All of them agree here: skew is the simulation's subject, not a bench's. */
  clockOf(host: Host): Clock {
    return {
      now: () => beginMs + this.nowMs,
      monotonic: () => this.nowMs,
      sleep: (ms, signal) => {
        if (signal?.aborted) return Promise.resolve();
        return new Promise((resolve) => {
          const done = () => {
            due.cancelled = true;
            signal?.removeEventListener('abort', done);
            resolve();
          };
          const due = this.after(ms, done, host);
          signal?.addEventListener('abort', done);
        });
      },
      timer: (ms, run) => {
        const due = this.after(ms, run, host);
        return {
          cancel: () => {
            due.cancelled = true;
          },
        };
      },
    };
  }
}

/** When everything that can go on without time has gone on. */
const drained = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Mulberry32: a run with the same seed goes the same way. @returns numbers in [0, 1) */
export function seeded(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
