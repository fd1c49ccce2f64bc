import { describe } from '../shared/errors.ts';
import type { Seq } from '../shared/sequence.ts';
import type { Claim } from '../shared/tables/leases.ts';
import type { Context } from './context.ts';

/**
 * - refused  the table says that it isn't ours any more
 * - expired  our own clock says that it ran out before a renewal was confirmed; another may own it by now
 * - gone     somebody has deleted the item
 */
export type Loss = 'refused' | 'expired' | 'gone';

/** What a confirmed write says of the lease. */
export type Term = {
  /** Monotonic ms right before the write was sent: the lease counts from here, not from when the answer came. */
  sentAtMs: number;
  /** Unix ms that the write put into the item. */
  expiresAtMs: number;
};

/**
 * The lease on one connection, from this worker's side. It is a scope: when it is lost, for whatever reason, its one
 * signal aborts, and everything that is done under it ends. Nothing may be emitted once `valid()` has said no.
 */
export class Lease {
  readonly claim: Claim;
  readonly #context: Context;
  readonly #lost = new AbortController();
  #loss: Loss | undefined;
  /** Monotonic ms. */
  #validUntilMs: number;
  #confirmedExpiryMs: number;
  #lastSentExpiryMs: number;
  #fence = { cancel: () => {} };

  constructor(context: Context, claim: Claim, term: Term) {
    this.#context = context;
    this.claim = claim;
    this.#validUntilMs = term.sentAtMs + this.#ownTermMs;
    this.#confirmedExpiryMs = term.expiresAtMs;
    this.#lastSentExpiryMs = term.expiresAtMs;
    this.#armFence();
  }

  /** Aborts when the lease is lost. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get loss(): Loss | undefined {
    return this.#loss;
  }

  /**
   * Asks the clock, not a timer: after the process was frozen, sockets have their say before timers do.
   */
  valid(): boolean {
    if (this.#loss === undefined && this.#context.clock.monotonic() >= this.#validUntilMs) this.lose('expired');
    return this.#loss === undefined;
  }

  lose(loss: Loss): void {
    if (this.#loss !== undefined) return;
    this.#loss = loss;
    this.#fence.cancel();
    this.#lost.abort(loss);
  }

  /** Renews until `until` aborts or the lease is lost. When it has returned, no renewal is on its way. */
  async keep(position: () => Seq | undefined, until: AbortSignal): Promise<void> {
    const { clock, random, config } = this.#context;
    const over = AbortSignal.any([until, this.signal]);
    // Spread over the heartbeat, so that a thousand leases taken together aren't renewed together.
    let waitMs = config.lease.heartbeatMs * (0.5 + random() / 2);
    while (true) {
      await clock.sleep(waitMs, over);
      if (over.aborted || !this.valid()) break;
      const startedMs = clock.monotonic();
      const rhythmMs = (await this.#renew(position())) ? config.lease.heartbeatMs : this.#retryMs;
      waitMs = Math.max(0, rhythmMs - (clock.monotonic() - startedMs));
    }
  }

  /** The lease isn't needed any more: no timer shall fire for it. */
  close(): void {
    this.#fence.cancel();
  }

  /** @returns whether the rhythm may go on as usual */
  async #renew(position: Seq | undefined): Promise<boolean> {
    const { clock, config, leases, log, metrics } = this.#context;
    const sentAtMs = clock.monotonic();
    const nowMs = clock.now();
    // Only forward, even if the wall clock was set back: the table refuses anything else, and it would look like a loss.
    const expiresAtMs = Math.max(nowMs + config.lease.forMs, this.#lastSentExpiryMs + 1);
    this.#lastSentExpiryMs = expiresAtMs;
    try {
      const outcome = await leases.renew(this.claim, expiresAtMs, position, nowMs);
      if (outcome === 'refused') this.lose('refused');
      else this.#extend({ sentAtMs, expiresAtMs });
      return true;
    } catch (fault) {
      // No answer is no loss: the lease still runs, and the next try may be answered.
      metrics.count('RenewalsUnanswered');
      log.warn('renewal.unanswered', { ...logged(this.claim), fault: describe(fault) });
      return false;
    }
  }

  #extend(term: Term): void {
    // If the wall clock was set back, the expiry moved less than time did; then we may count on that much less.
    const advancedMs = term.expiresAtMs - this.#confirmedExpiryMs;
    this.#validUntilMs = Math.min(term.sentAtMs + this.#ownTermMs, this.#validUntilMs + advancedMs);
    this.#confirmedExpiryMs = term.expiresAtMs;
    this.#armFence();
  }

  /** Shorter than what others see by the skew that their clocks may have. */
  get #ownTermMs(): number {
    return this.#context.config.lease.forMs - this.#context.config.lease.skewMs;
  }

  get #retryMs(): number {
    return this.#context.config.lease.heartbeatMs / 4;
  }

  #armFence(): void {
    this.#fence.cancel();
    const { clock } = this.#context;
    this.#fence = clock.timer(Math.max(0, this.#validUntilMs - clock.monotonic()), () => {
      if (this.valid()) this.#armFence();
    });
  }
}

export function logged(claim: Claim) {
  return { connection: claim.pk, epoch: claim.epoch };
}
