import type { WorkersTable } from '../shared/tables/workers.ts';

/** More dead ids than any deployment leaves behind; past that, the oldest are read again when they are asked for. */
const mostRemembered = 10_000;

/** Which workers are known to be dead. A tombstone is for good, so each is read once and remembered. */
export class Tombstones {
  /** Unix ms, of those that were read last. Only what is measured depends on it. */
  readonly #leaseEnds = new Map<string, number>();
  readonly #workers: Pick<WorkersTable, 'get'>;
  readonly #dead = new Set<string>();
  /** Reads that are on their way. */
  readonly #asking = new Map<string, Promise<boolean>>();

  constructor(workers: Pick<WorkersTable, 'get'>) {
    this.#workers = workers;
  }

  /** A row that is missing proves nothing: it may have been deleted by hand, and its worker be alive. */
  async isDead(workerId: string): Promise<boolean> {
    if (this.#dead.has(workerId)) return true;
    // A dead worker leaves many connections, and they come together. Only a yes is shared: a no may be older than what the
    // one who asks has heard.
    const asked = this.#asking.get(workerId);
    if (asked && (await asked)) return true;
    const answer = this.#read(workerId);
    const asking = answer.catch(() => false);
    this.#asking.set(workerId, asking);
    void asking.then(() => {
      if (this.#asking.get(workerId) === asking) this.#asking.delete(workerId);
    });
    return answer;
  }

  async #read(workerId: string): Promise<boolean> {
    const row = await this.#workers.get(workerId);
    if (row?.expiredAtMs === undefined) return false;
    if (this.#dead.size >= mostRemembered) this.#dead.delete(this.#dead.values().next().value ?? '');
    this.#dead.add(workerId);
    if (this.#leaseEnds.size >= mostRemembered) this.#leaseEnds.clear();
    this.#leaseEnds.set(workerId, row.leaseExpiresAtMs);
    return true;
  }

  /** @returns when the lease of a worker that is known to be dead would have ended, Unix ms */
  leaseEndOf(workerId: string): number | undefined {
    return this.#leaseEnds.get(workerId);
  }
}
