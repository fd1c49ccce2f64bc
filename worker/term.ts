import type { Clock, Timer } from '../shared/clock.ts';

/** How long a lease lasts, and how far apart the clocks may be that judge it. Milliseconds. */
export type Lasting = { forMs: number; skewMs: number };

/** A write that takes or prolongs a lease. */
export type Writing = {
  /** Monotonic ms right before it was sent: the lease counts from here, not from when the answer came. */
  sentAtMs: number;
  /** Unix ms that it puts into the item. */
  expiresAtMs: number;
};

/**
 * How long this process may count on a lease that it keeps prolonging: judged by its own monotonic clock, from before
 * each confirmed write was sent, and shorter than what others see by the skew that their clocks may have.
 */
export class Term {
  readonly #clock: Clock;
  readonly #lasting: Lasting;
  readonly #onOver: () => void;
  /** Monotonic ms. */
  #validUntilMs: number;
  #confirmedExpiryMs: number;
  #lastSentExpiryMs: number;
  #timer: Timer | undefined;
  #closed = false;

  /** @param onOver called once, by a timer, when the time is up; whoever can't wait for a timer asks `over` */
  constructor(clock: Clock, lasting: Lasting, confirmed: Writing, onOver: () => void) {
    this.#clock = clock;
    this.#lasting = lasting;
    this.#onOver = onOver;
    this.#validUntilMs = confirmed.sentAtMs + lasting.forMs - lasting.skewMs;
    this.#confirmedExpiryMs = confirmed.expiresAtMs;
    this.#lastSentExpiryMs = confirmed.expiresAtMs;
    this.#arm();
  }

  /** Asks the clock, not a timer: after the process was frozen, sockets have their say before timers do. */
  get over(): boolean {
    return this.remainingMs <= 0;
  }

  get remainingMs(): number {
    return this.#validUntilMs - this.#clock.monotonic();
  }

  /** What the next prolonging write shall say. */
  next(): Writing {
    const sentAtMs = this.#clock.monotonic();
    // Only forward, even if the wall clock was set back: the table refuses anything else, and it would look like a loss.
    const expiresAtMs = Math.max(this.#clock.now() + this.#lasting.forMs, this.#lastSentExpiryMs + 1);
    this.#lastSentExpiryMs = expiresAtMs;
    return { sentAtMs, expiresAtMs };
  }

  /** The table has confirmed it. */
  extend(confirmed: Writing): void {
    // If the wall clock was set back, the expiry moved less than time did; then we may count on that much less.
    const advancedMs = confirmed.expiresAtMs - this.#confirmedExpiryMs;
    const ownMs = confirmed.sentAtMs + this.#lasting.forMs - this.#lasting.skewMs;
    this.#validUntilMs = Math.min(ownMs, this.#validUntilMs + advancedMs);
    this.#confirmedExpiryMs = confirmed.expiresAtMs;
    this.#arm();
  }

  /** No timer shall fire any more. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #arm(): void {
    this.#timer?.cancel();
    if (this.#closed) return;
    this.#timer = this.#clock.timer(Math.max(0, this.remainingMs), () => {
      if (this.over) this.#onOver();
      else this.#arm();
    });
  }
}

/** @returns what a first write shall say */
export function firstWriting(clock: Clock, { forMs }: Lasting): Writing {
  return { sentAtMs: clock.monotonic(), expiresAtMs: clock.now() + forMs };
}

type Rhythm = {
  clock: Clock;
  firstMs: number;
  everyMs: number;
  /** After an unanswered try. */
  retryMs: number;
  until: AbortSignal;
};

/**
 * Calls `renew` in rhythm, one at a time, until the signal aborts. When it has returned, no renewal is on its way.
 * @param renew tells whether it was answered
 */
export async function keepRenewing({ clock, firstMs, everyMs, retryMs, until }: Rhythm, renew: () => Promise<boolean>) {
  let waitMs = firstMs;
  while (true) {
    await clock.sleep(waitMs, until);
    if (until.aborted) return;
    const startedMs = clock.monotonic();
    const rhythmMs = (await renew()) ? everyMs : retryMs;
    waitMs = Math.max(0, rhythmMs - (clock.monotonic() - startedMs));
  }
}
