/**
 * When most workers are overdue at once, the store was away, not they. They come back by themselves and take again what
 * they held, so nobody is expired for one more lease, counted from when that was first seen. Kept in memory: one
 * invocation of the schedule lasts longer than a lease.
 */
export class MassGuard {
  readonly #waitMs: number;
  #sinceMs: number | undefined;
  #lookedMs: number | undefined;

  /** @param waitMs one more lease */
  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  /** @param nowMs monotonic. @returns whether nobody may be expired now */
  holdsBack(overdue: number, undead: number, nowMs: number): boolean {
    // A container that slept since says nothing about now.
    if (this.#lookedMs !== undefined && nowMs - this.#lookedMs > this.#waitMs) this.#sinceMs = undefined;
    this.#lookedMs = nowMs;
    if (overdue * 2 <= undead) {
      this.#sinceMs = undefined;
      return false;
    }
    this.#sinceMs ??= nowMs;
    return nowMs - this.#sinceMs < this.#waitMs;
  }
}
