import type { WorkersTable } from '../shared/tables/workers.ts';

/** More dead ids than any deployment leaves behind; past that, the oldest are read again when they are asked for. */
const mostRemembered = 10_000;

/** Which workers are known to be dead. A tombstone is for good, so each is read once and remembered. */
export class Tombstones {
  readonly #workers: Pick<WorkersTable, 'get'>;
  /** When their leases would have ended, Unix ms. */
  readonly #dead = new Map<string, number>();

  constructor(workers: Pick<WorkersTable, 'get'>) {
    this.#workers = workers;
  }

  /** A row that is missing proves nothing: it may have been deleted by hand, and its worker be alive. */
  async isDead(workerId: string): Promise<boolean> {
    if (this.#dead.has(workerId)) return true;
    const row = await this.#workers.get(workerId);
    if (row?.expiredAtMs === undefined) return false;
    if (this.#dead.size >= mostRemembered) this.#dead.delete(this.#dead.keys().next().value ?? '');
    this.#dead.set(workerId, row.leaseExpiresAtMs);
    return true;
  }

  /** @returns when the lease of a worker that is known to be dead would have ended, Unix ms */
  leaseEndOf(workerId: string): number | undefined {
    return this.#dead.get(workerId);
  }
}
