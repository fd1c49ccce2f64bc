import type { Host } from './host.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';

/**
 * What becomes of one request.
 * - ok          applied and answered, in good time
 * - slow        applied and answered, but perhaps after the caller gave up
 * - lost        never applied, never answered
 * - unanswered  applied, the answer is lost
 * - late        applied long after the caller gave up
 * - reset       fails at once, perhaps applied
 * - throttled   refused by the service, not applied
 */
export type Fate = 'ok' | 'slow' | 'lost' | 'unanswered' | 'late' | 'reset' | 'throttled';

export type Weather = Partial<Record<Fate, number>>;

export const calm: Weather = { ok: 1 };

export type Plan = {
  fate: Fate /** From now, undefined: never. */;
  applyMs: number | undefined;
  answerMs: number | undefined;
};

/** The way between hosts and one service: how long things take, and what goes wrong at the moment. */
export class Network {
  weather: Weather = calm;
  /** For one kind of request only. */
  aimed: { kind: string; weather: Weather } | undefined;
  /** True time until which nothing comes through from these hosts; `undefined` stands for all. */
  readonly #silences = new Map<Host | undefined, { untilMs: number; weather: Weather }>();
  /** No request is applied later than this: afterwards all must come to rest. */
  latestMs = Infinity;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #faults: Map<string, number>;
  readonly #name: string;

  constructor(scheduler: Scheduler, random: Random, faults: Map<string, number>, name: string) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#faults = faults;
    this.#name = name;
  }

  silence(host: Host | undefined, forMs: number): void {
    const { nowMs } = this.#scheduler;
    // What is sent into silence may have left before it, or come out after it.
    const weather = this.#random.pick<Weather>([{ lost: 1 }, { lost: 6, unanswered: 2, late: 2 }]);
    this.#silences.set(host, { untilMs: nowMs + forMs, weather });
    this.#scheduler.note(`${this.#name}.silent`, () => `${host?.name ?? 'all'} for ${forMs} ms`);
  }

  clear(): void {
    this.weather = calm;
    this.aimed = undefined;
    this.#silences.clear();
  }

  plan(host: Host, timeoutMs: number, kind = ''): Plan {
    const fate = this.#fateOf(host, kind);
    if (fate !== 'ok') this.#faults.set(`${this.#name}.${fate}`, (this.#faults.get(`${this.#name}.${fate}`) ?? 0) + 1);
    const plan = this.#planFor(fate, timeoutMs);
    const latestMs = Math.max(0, this.latestMs - this.#scheduler.nowMs);
    if (plan.applyMs !== undefined && plan.applyMs > latestMs) plan.applyMs = Math.max(1, latestMs);
    return plan;
  }

  latencyMs(): number {
    return this.#random.int(1, 12);
  }

  #fateOf(host: Host, kind: string): Fate {
    const { nowMs } = this.#scheduler;
    for (const silent of [this.#silences.get(host), this.#silences.get(undefined)]) {
      if (silent && nowMs < silent.untilMs) return this.#random.weighted(silent.weather);
    }
    return this.#random.weighted(this.aimed?.kind === kind ? this.aimed.weather : this.weather);
  }

  #planFor(fate: Fate, timeoutMs: number): Plan {
    const way = () => this.latencyMs();
    const random = this.#random;
    switch (fate) {
      case 'ok': {
        const applyMs = way();
        return { fate, applyMs, answerMs: applyMs + way() };
      }
      case 'slow': {
        const applyMs = random.int(1, Math.ceil(timeoutMs * 1.2));
        return { fate, applyMs, answerMs: applyMs + random.int(1, Math.ceil(timeoutMs * 0.8)) };
      }
      case 'lost':
        return { fate, applyMs: undefined, answerMs: undefined };
      case 'unanswered':
        return { fate, applyMs: way(), answerMs: undefined };
      case 'late': {
        const most = random.pick([timeoutMs * 2, 15_000, 45_000]);
        return { fate, applyMs: random.int(timeoutMs, Math.max(timeoutMs, most)), answerMs: undefined };
      }
      case 'reset': {
        const answerMs = way();
        return { fate, applyMs: random.chance(0.5) ? random.int(1, 500) : undefined, answerMs };
      }
      case 'throttled':
        return { fate, applyMs: undefined, answerMs: way() + way() };
    }
  }
}
