import { randomUUID } from 'node:crypto';
import { describe } from '../shared/errors.ts';
import type { WorkerReport } from '../shared/tables/workers.ts';
import type { Context } from './context.ts';
import { firstWriting, keepRenewing, Term } from './term.ts';

export type PresenceContext = Pick<Context, 'config' | 'clock' | 'log' | 'metrics' | 'workers'> & {
  newId: () => string;
};

/** What the worker says of itself at each heartbeat. */
export type Load = { held: number; draining: boolean };

const retryMs = 1000;

/**
 * The worker lease: one short lease that says "this worker lives", whatever it holds. All that it owns depends on it.
 *
 * Registered under an id, it is renewed at every heartbeat. When its time is up without a confirmed renewal, or a renewal
 * is refused (somebody has put a tombstone on it), it is fenced: nothing may be done under that id any more, and the id
 * never comes back. With WORKER_LEASE=off it only reports, and each connection's own lease decides.
 */
export class Presence {
  readonly #context: PresenceContext;
  readonly #startedAtMs: number;
  #id: string;
  #term: Term | undefined;
  #fence = new AbortController();

  constructor(context: PresenceContext) {
    this.#context = context;
    this.#startedAtMs = context.clock.now();
    this.#id = context.newId();
  }

  /** The id that claims are made under now. */
  get id(): string {
    return this.#id;
  }

  /** Aborts when the current id is fenced. */
  get fenced(): AbortSignal {
    return this.#fence.signal;
  }

  /** Whether what was claimed under `id` may still be acted for, by this process's clock at this moment. */
  valid(id: string): boolean {
    if (id !== this.#id || this.#fence.signal.aborted) return false;
    if (!this.#context.config.workerLease) return true;
    if (this.#term?.over) this.#lose('expired');
    return this.#term !== undefined && !this.#fence.signal.aborted;
  }

  /** Whether a claim that is sent now can be answered while this worker still lives. */
  mayClaim(): boolean {
    if (!this.valid(this.#id)) return false;
    const { workerLease, requestTimeoutMs } = this.#context.config;
    return !workerLease || (this.#term?.remainingMs ?? 0) > requestTimeoutMs;
  }

  /** Registers under the current id, for as long as it takes the store to answer. @returns false: told to stop before */
  async register(load: () => Load, until: AbortSignal): Promise<boolean> {
    const { clock, config, log, metrics, workers } = this.#context;
    while (!until.aborted) {
      const writing = firstWriting(clock, config.lease);
      try {
        if ((await workers.register(this.#report(load(), writing.expiresAtMs))) === 'refused') {
          // An earlier try was applied, unanswered, and ran out meanwhile: that id is dead already.
          this.#id = this.#context.newId();
          continue;
        }
        this.#term?.close();
        this.#term = new Term(clock, config.lease, writing, () => this.#lose('expired'));
        log.info('worker.registered', { worker_id: this.#id });
        return true;
      } catch (fault) {
        metrics.count('StoreFaults');
        log.warn('registration.unanswered', { fault: describe(fault) });
        await clock.sleep(retryMs, until);
      }
    }
    return false;
  }

  /** Renews until the signal aborts or this id is fenced. */
  async keep(load: () => Load, until: AbortSignal): Promise<void> {
    const { clock, config } = this.#context;
    const everyMs = config.lease.heartbeatMs;
    const over = AbortSignal.any([until, this.fenced]);
    await keepRenewing({ clock, firstMs: everyMs, everyMs, retryMs: everyMs / 4, until: over }, () =>
      this.#renew(load()),
    );
  }

  /** The old id is buried, for good, and a fresh one takes its place. @returns false: told to stop before the store answered */
  async bury(until: AbortSignal): Promise<boolean> {
    while (!until.aborted) {
      if (await this.tombstone()) break;
      await this.#context.clock.sleep(retryMs, until);
    }
    if (until.aborted) return false;
    this.#term?.close();
    this.#term = undefined;
    this.#id = this.#context.newId();
    this.#fence = new AbortController();
    return true;
  }

  /** Says for everyone that the current id is dead. @returns whether that was answered */
  async tombstone(): Promise<boolean> {
    const { clock, log, metrics, workers } = this.#context;
    try {
      await workers.expire(this.#id, undefined, clock.now());
      return true;
    } catch (fault) {
      metrics.count('StoreFaults');
      log.warn('tombstone.unanswered', { worker_id: this.#id, fault: describe(fault) });
      return false;
    }
  }

  /** No timer shall fire any more. */
  close(): void {
    this.#term?.close();
  }

  #lose(why: 'expired' | 'refused'): void {
    if (this.#fence.signal.aborted) return;
    this.#term?.close();
    if (!this.#context.config.workerLease) return;
    this.#context.metrics.count('WorkersFenced');
    this.#context.log.error('worker.fenced', { worker_id: this.#id, why });
    this.#fence.abort(why);
  }

  /** @returns whether it was answered */
  async #renew(load: Load): Promise<boolean> {
    const { log, metrics, workers } = this.#context;
    const writing = this.#term?.next();
    if (!writing || !this.valid(this.#id)) return true;
    try {
      const outcome = await workers.renew(this.#report(load, writing.expiresAtMs));
      if (outcome === 'refused') this.#lose('refused');
      else this.#term?.extend(writing);
      return true;
    } catch (fault) {
      metrics.count('RenewalsUnanswered');
      log.warn('presence.unanswered', { worker_id: this.#id, fault: describe(fault) });
      return false;
    }
  }

  #report({ held, draining }: Load, leaseExpiresAtMs: number): WorkerReport {
    const { config } = this.#context;
    return {
      workerId: this.#id,
      leaseExpiresAtMs,
      held,
      capacity: config.maxConnections,
      draining,
      revision: config.revision,
      taskArn: config.taskArn,
      startedAtMs: this.#startedAtMs,
    };
  }
}

export const newWorkerId = (): string => `w-${randomUUID()}`;
