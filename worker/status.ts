import { describe } from '../shared/errors.ts';
import type { StatusChange } from '../shared/tables/leases.ts';
import type { Context } from './context.ts';
import { type Lease, logged } from './lease.ts';

const retryMs = 1000;

/**
 * Writes what has become of a connection into its item: the newest state only, one write at a time, again until it is
 * answered or the lease is gone.
 */
export class StatusWriter {
  readonly #context: Context;
  readonly #lease: Lease;
  #wanted: StatusChange;
  #written: StatusChange;
  #writing: Promise<void> | undefined;
  #closed = false;

  constructor(context: Context, lease: Lease, asItIs: StatusChange) {
    this.#context = context;
    this.#lease = lease;
    this.#wanted = asItIs;
    this.#written = asItIs;
  }

  /** What was last set. */
  get current(): StatusChange {
    return this.#wanted;
  }

  set(change: StatusChange): void {
    this.#wanted = change;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  /** No further write begins. Resolves when none is on its way. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { leases, clock, log, metrics } = this.#context;
    while (this.#wanted !== this.#written && !this.#closed && this.#lease.valid()) {
      const change = this.#wanted;
      try {
        const outcome = await leases.setStatus(this.#lease.claim, change, clock.now());
        if (outcome === 'refused') return this.#lease.lose('refused');
        this.#written = change;
      } catch (fault) {
        metrics.count('StoreFaults');
        log.warn('status.unanswered', { ...logged(this.#lease.claim), fault: describe(fault) });
        await clock.sleep(retryMs, this.#lease.signal);
      }
    }
  }
}
