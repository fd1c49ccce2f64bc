import type { Clock } from './clock.ts';

/** One answer of the store: when it was asked and answered by our wall clock, and what its own clock said. Unix ms. */
export type DateSample = { sentAtMs: number; answeredAtMs: number; dateMs: number };

/** An HTTP date has whole seconds, cut off. RFC 9110, 5.6.7. */
const dateStepMs = 1000;
const rememberedMs = 120_000;

type Bounds = { lowMs: number; highMs: number };

/**
 * How far our wall clock is ahead of the store's, by the `Date` header of its answers. One answer bounds it to a second
 * and the time that the answer took; since the answers fall differently into their seconds, many bound it closely.
 */
export class ClockSkew {
  readonly #clock: Clock;
  #bounds: (Bounds & { atMs: number })[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add({ sentAtMs, answeredAtMs, dateMs }: DateSample): void {
    const atMs = this.#clock.monotonic();
    const bounds = { atMs, lowMs: sentAtMs - dateMs - dateStepMs, highMs: answeredAtMs - dateMs };
    const known = this.bounds;
    // Nothing lies within both: one of the clocks was set. What was known before is worth nothing now.
    const set = known !== undefined && (bounds.lowMs > known.highMs || bounds.highMs < known.lowMs);
    // An answer that bounds it no closer is only worth keeping when what is known grows old.
    const tighter = known === undefined || set || bounds.lowMs > known.lowMs || bounds.highMs < known.highMs;
    if (set) this.#bounds = [];
    if (tighter) this.#bounds.push(bounds);
  }

  /** @returns undefined before the first answer */
  get bounds(): Bounds | undefined {
    const since = this.#clock.monotonic() - rememberedMs;
    if (this.#bounds.length > 1)
      this.#bounds = this.#bounds.filter(({ atMs }, index) => atMs >= since || index === this.#bounds.length - 1);
    if (this.#bounds.length === 0) return undefined;
    return {
      lowMs: Math.max(...this.#bounds.map(({ lowMs }) => lowMs)),
      highMs: Math.min(...this.#bounds.map(({ highMs }) => highMs)),
    };
  }

  /** Milliseconds that our clock is ahead, best guess; negative when it is behind. */
  get estimateMs(): number | undefined {
    const bounds = this.bounds;
    return bounds && Math.round((bounds.lowMs + bounds.highMs) / 2);
  }

  /**
   * @param apartMs how far apart two machines' clocks may be. So each may be half of that from the store's.
   * @returns 'unsure' while the answers so far leave both possible
   */
  judge(apartMs: number): 'within' | 'past' | 'unsure' {
    const bounds = this.bounds;
    if (!bounds) return 'unsure';
    const allowedMs = apartMs / 2;
    if (bounds.lowMs > allowedMs || bounds.highMs < -allowedMs) return 'past';
    return bounds.lowMs >= -allowedMs && bounds.highMs <= allowedMs ? 'within' : 'unsure';
  }
}
