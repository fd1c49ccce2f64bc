import { describe } from '../shared/errors.ts';
import type { Seq } from '../shared/sequence.ts';
import type { Claim } from '../shared/tables/leases.ts';
import type { Context } from './context.ts';
import { keepRenewing, Term, type Writing } from './term.ts';

/**
 * - refused  the table says that it isn't ours any more
 * - expired  our own clock says that it ran out before a renewal was confirmed; another may own it by now
 * - fenced   the worker's own lease is over, and with it everything that it owned
 * - gone     somebody has deleted the item
 */
export type Loss = 'refused' | 'expired' | 'fenced' | 'gone';

/**
 * The lease on one connection, from this worker's side. It is a scope: when it is lost, for whatever reason, its one
 * signal aborts, and everything that is done under it ends. Nothing may be emitted once `valid()` has said no.
 */
export class Lease {
  readonly claim: Claim;
  readonly #context: Context;
  readonly #lost = new AbortController();
  readonly #term: Term;
  #loss: Loss | undefined;

  constructor(context: Context, claim: Claim, writing: Writing) {
    this.#context = context;
    this.claim = claim;
    this.#term = new Term(context.clock, context.config.connectionLease, writing, () => this.lose('expired'));
  }

  /** Aborts when the lease is lost. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get loss(): Loss | undefined {
    return this.#loss;
  }

  /** Whether this worker may still act for the connection, by its clock at this moment. */
  valid(): boolean {
    if (this.#loss === undefined && this.#term.over) this.lose('expired');
    if (this.#loss === undefined && !this.#context.presence.valid(this.claim.owner)) this.lose('fenced');
    return this.#loss === undefined;
  }

  lose(loss: Loss): void {
    if (this.#loss !== undefined) return;
    this.#loss = loss;
    this.#term.close();
    this.#lost.abort(loss);
  }

  /** Renews until `until` aborts or the lease is lost. When it has returned, no renewal is on its way. */
  async keep(position: () => Seq | undefined, until: AbortSignal): Promise<void> {
    const { clock, random, config } = this.#context;
    const everyMs = config.connectionLease.heartbeatMs;
    await keepRenewing(
      {
        clock,
        // Spread over the heartbeat, so that a thousand leases taken together aren't renewed together.
        firstMs: everyMs * (0.5 + random() / 2),
        everyMs,
        retryMs: Math.min(everyMs, config.lease.heartbeatMs) / 4,
        until: AbortSignal.any([until, this.signal]),
      },
      () => this.#renew(position()),
    );
  }

  /** The lease isn't needed any more: no timer shall fire for it. */
  close(): void {
    this.#term.close();
  }

  /** @returns whether it was answered */
  async #renew(position: Seq | undefined): Promise<boolean> {
    if (!this.valid()) return true;
    const { clock, leases, log, metrics } = this.#context;
    const writing = this.#term.next();
    try {
      const outcome = await leases.renew(this.claim, writing.expiresAtMs, position, clock.now());
      if (outcome === 'refused') this.lose('refused');
      else this.#term.extend(writing);
      return true;
    } catch (fault) {
      // No answer is no loss: the lease still runs, and the next try may be answered.
      metrics.count('RenewalsUnanswered');
      log.warn('renewal.unanswered', { ...logged(this.claim), fault: describe(fault) });
      return false;
    }
  }
}

/** What every log line about a connection carries, here and in functions/. Without an epoch yet: null. */
export function logged(claim: Pick<Claim, 'pk' | 'epoch'>) {
  return { connection: claim.pk, epoch: claim.epoch };
}
