import type { Clock } from '../../../shared/clock.ts';
import type { Random } from './random.ts';
import type { Happening, Scheduler } from './scheduler.ts';

/** Unix ms at which every simulation begins. */
export const beginningMs = 1_900_000_000_000;

/** A timer that is late by this much at most, because its process had other work to do. */
const mostLateMs = 15;

/**
 * One process on a machine of its own: its clocks, and whether it runs, is stopped for a while, or is gone. What it has
 * sent goes on without it.
 */
export class Host {
  readonly name: string;
  readonly clock: Clock;
  state: 'running' | 'frozen' | 'dead' = 'running';
  /** Its wall clock is ahead of the true time by this. */
  skewMs: number;
  /** When it last went on after having been stopped. */
  thawedMs = 0;
  /** Called once, when it dies. */
  onDeath: (() => void)[] = [];
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #originMs: number;
  #held: Happening[] = [];
  /** What takes each wait off its signal: see `forget`. */
  readonly #waits = new Set<() => void>();

  constructor(scheduler: Scheduler, random: Random, name: string, skewMs: number) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.name = name;
    this.skewMs = skewMs;
    this.#originMs = random.int(0, 10_000_000);
    this.clock = this.#clock();
  }

  /** Waits that somebody has begun and that aren't over. */
  get waiting(): number {
    return this.#waits.size;
  }

  /**
   * Takes all that still waits off its signals. Node keeps a signal made by `AbortSignal.any` for as long as somebody
   * listens to it, and with it everything that a simulation consists of.
   */
  forget(): void {
    for (const takeOff of this.#waits) takeOff();
    this.#waits.clear();
  }

  /** Asked by the scheduler. What can't run now is kept until the thaw, or dropped. */
  mayRun(happening: Happening): boolean {
    if (this.state === 'running') return true;
    if (this.state === 'frozen') this.#held.push(happening);
    return false;
  }

  /** Something arrives here. */
  deliver(atMs: number, run: () => void): Happening {
    return this.#scheduler.at(atMs, run, this, 'delivery');
  }

  freeze(forMs: number): void {
    if (this.state !== 'running') return;
    this.state = 'frozen';
    this.#scheduler.note('host.frozen', () => `${this.name} for ${forMs} ms`);
    this.#scheduler.after(forMs, () => this.#thaw());
  }

  /** Nothing of it ever happens any more. */
  die(why: string): void {
    if (this.state === 'dead') return;
    this.state = 'dead';
    this.#held = [];
    this.forget();
    this.#scheduler.note(`host.${why}`, () => this.name);
    for (const notice of this.onDeath.splice(0)) notice();
  }

  /** All at once: timers in their order, arrivals in theirs, but which of the two comes first is chance. */
  #thaw(): void {
    if (this.state !== 'frozen') return;
    this.state = 'running';
    this.thawedMs = this.#scheduler.nowMs;
    this.#scheduler.note('host.thawed', () => `${this.name}, ${this.#held.length} waiting`);
    const held = this.#held;
    this.#held = [];
    const timers = held.filter(({ kind }) => kind === 'timer');
    const deliveries = held.filter(({ kind }) => kind === 'delivery');
    const timersFirst = this.#random.pick([0, 0.5, 1]);
    while (timers.length + deliveries.length > 0) {
      const from =
        deliveries.length === 0 || (timers.length > 0 && this.#random.chance(timersFirst)) ? timers : deliveries;
      const happening = from.shift();
      if (happening && !happening.cancelled) this.#scheduler.next(happening);
    }
  }

  #clock(): Clock {
    const scheduler = this.#scheduler;
    const start = (ms: number, run: () => void) => {
      const lateMs = this.#random.chance(0.1) ? this.#random.int(1, mostLateMs) : 0;
      // Node makes at least a millisecond of whatever it is given.
      return scheduler.after((ms >= 1 ? Math.ceil(ms) : 1) + lateMs, run, this, 'timer');
    };
    return {
      now: () => beginningMs + scheduler.nowMs + this.skewMs,
      monotonic: () => this.#originMs + scheduler.nowMs,
      sleep: (ms, signal) => {
        if (signal?.aborted) return Promise.resolve();
        return new Promise((resolve) => {
          const takeOff = () => signal?.removeEventListener('abort', done);
          const done = () => {
            happening.cancelled = true;
            this.#waits.delete(takeOff);
            takeOff();
            resolve();
          };
          const happening = start(ms, done);
          this.#waits.add(takeOff);
          signal?.addEventListener('abort', done);
        });
      },
      timer: (ms, run) => {
        const happening = start(ms, run);
        return {
          cancel: () => {
            happening.cancelled = true;
          },
        };
      },
    };
  }
}
