import { describe } from '../shared/errors.ts';
import type { Claim, Predecessor } from '../shared/tables/leases.ts';
import { adopt, type ClaimOutcome, claim } from './claim.ts';
import type { Context } from './context.ts';
import { Holding } from './holding.ts';
import { logged } from './lease.ts';
import type { Trace } from './traces.ts';

/**
 * All that this worker holds or is about to hold. It never takes more than its capacity, and a connection is in here
 * once at most: from before the claim is sent until nothing of the holding is left.
 */
export class Holdings {
  readonly #context: Context;
  readonly #held = new Map<string, Holding>();
  readonly #claiming = new Map<string, Promise<void>>();
  readonly #waiting = new Set<() => void>();
  #fenced: Claim[] = [];
  #draining = false;

  constructor(context: Context) {
    this.#context = context;
  }

  get held(): number {
    return this.#held.size;
  }

  get draining(): boolean {
    return this.#draining;
  }

  get(pk: string): Holding | undefined {
    return this.#held.get(pk);
  }

  all(): Holding[] {
    return [...this.#held.values()];
  }

  /** Held, or on the way to be. */
  has(pk: string): boolean {
    return this.#held.has(pk) || this.#claiming.has(pk);
  }

  /** How many more it may take now. */
  get room(): number {
    if (this.#draining || !this.#context.presence.mayClaim()) return 0;
    const { maxConnections, claimsAtOnce } = this.#context.config;
    return Math.min(maxConnections - this.#held.size, claimsAtOnce) - this.#claiming.size;
  }

  /** Resolves when there is room, or the signal aborts. */
  async roomFreed(signal: AbortSignal): Promise<void> {
    while (this.room <= 0 && !signal.aborted) await this.#mayBeFreed(signal);
  }

  #mayBeFreed(signal: AbortSignal): Promise<void> {
    const { clock, config } = this.#context;
    return new Promise((resolve) => {
      const done = () => {
        timer.cancel();
        signal.removeEventListener('abort', done);
        this.#waiting.delete(done);
        resolve();
      };
      // A renewal that is answered at last makes room too, and tells nobody.
      const timer = clock.timer(config.lease.heartbeatMs, done);
      signal.addEventListener('abort', done);
      this.#waiting.add(done);
    });
  }

  /** The worker's own lease is over: so is each on a connection. @returns what was held, for this worker to take again */
  fence(): Claim[] {
    for (const { lease } of this.all()) {
      if (lease.loss === undefined) this.#fenced.push(lease.claim);
      lease.lose('fenced');
    }
    return this.#fenced;
  }

  /** There is a new worker lease: claims may begin again. */
  reopened(): void {
    this.#fenced = [];
    this.#freed();
  }

  /** Resolves when nothing is held and no claim is on its way. */
  async emptied(): Promise<void> {
    while (this.#claiming.size + this.#held.size > 0) {
      await Promise.all([...this.#claiming.values(), ...this.all().map((holding) => holding.ended)]);
    }
  }

  /**
   * Claims the connection, and holds it from then on if that was won.
   * @param after who is said to have left it
   * @param trace of the wake-up that said so
   * @returns settled: nothing is left to do about it; unanswered: DynamoDB didn't say, somebody has to look again;
   *          no-room: another worker should have it
   */
  async take(pk: string, after?: Predecessor, trace?: Trace): Promise<'settled' | 'unanswered' | 'no-room'> {
    // A hint about one that is on its way out may be about a START that came after its STOP: not to be dropped.
    const before = this.#held.get(pk);
    if (before?.ending) await before.ended;
    if (!this.has(pk) && !this.#mayTake) return 'no-room';
    return this.#claimBy(pk, () => claim(this.#context, pk, after), trace);
  }

  /** Takes what the table says is ours although we don't hold it. */
  async adopt(row: { pk: string; leaseEpoch: number }): Promise<'settled' | 'unanswered' | 'no-room'> {
    if (!this.#mayTake) return 'no-room';
    return this.#claimBy(row.pk, () => adopt(this.#context, row));
  }

  /** Hands everything over. Resolves when nothing is left. */
  async drain(): Promise<void> {
    this.#draining = true;
    for (const holding of this.all()) holding.end({ why: 'drained' });
    await this.emptied();
  }

  get #mayTake(): boolean {
    const { config, presence } = this.#context;
    return !this.#draining && presence.mayClaim() && this.#held.size + this.#claiming.size < config.maxConnections;
  }

  async #claimBy(pk: string, attempt: () => Promise<ClaimOutcome>, trace?: Trace): Promise<'settled' | 'unanswered'> {
    if (this.has(pk)) return 'settled';
    const { log, metrics } = this.#context;
    const claiming = Promise.withResolvers<void>();
    this.#claiming.set(pk, claiming.promise);
    const claimed = trace?.step('claim');
    try {
      const outcome = await attempt();
      claimed?.();
      if (outcome.won) this.#hold(outcome, trace);
      else {
        metrics.count('ClaimsLost');
        trace?.annotate({ claim: outcome.why });
        log.debug('claim.lost', { connection: pk, epoch: null, ...outcome });
      }
      // Late, it is nobody's yet, or ours by the table alone: whoever looks next can say.
      return !outcome.won && outcome.why === 'late' ? 'unanswered' : 'settled';
    } catch (fault) {
      metrics.count('StoreFaults');
      claimed?.(describe(fault));
      log.warn('claim.undecided', { connection: pk, epoch: null, fault: describe(fault) });
      return 'unanswered';
    } finally {
      this.#claiming.delete(pk);
      claiming.resolve();
      this.#freed();
    }
  }

  #hold({ connection, lease, downSinceMs }: Extract<ClaimOutcome, { won: true }>, trace: Trace | undefined): void {
    const { log, metrics, config } = this.#context;
    const holding = new Holding(this.#context, connection, lease, { downSinceMs, trace });
    this.#held.set(holding.pk, holding);
    metrics.count('ClaimsWon');
    metrics.gauge('ActiveConnections', this.#held.size);
    trace?.annotate({ claim: 'won', epoch: connection.leaseEpoch });
    log.info('claim.won', { ...logged(lease.claim), held: this.#held.size });
    if (this.#held.size === config.maxConnections) log.warn('worker.full', { held: this.#held.size });
    void holding.ended.then(() => {
      this.#held.delete(holding.pk);
      metrics.gauge('ActiveConnections', this.#held.size);
      this.#freed();
    });
    // Won while the worker was told to go: let the next one have it.
    if (this.#draining) holding.end({ why: 'drained' });
  }

  #freed(): void {
    for (const done of this.#waiting) done();
  }
}
