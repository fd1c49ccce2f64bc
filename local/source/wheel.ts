/**
 * One timer for thousands of streams: a ring of slots, each a few milliseconds wide. Scheduling and expiring cost O(1), and the
 * process wakes up once per slot instead of once per stream.
 *
 * A stream that is due in longer than one turn of the ring waits in its slot for the next turn.
 */

export interface Scheduled {
  /** `Date.now()` at which it wants to be run; the wheel may run it up to one slot late, never early. */
  dueAtMs: number;
  /** Returns when it is due next, or `null` for never. */
  run(nowMs: number): number | null;
}

const SLOT_MS = 10;
const SLOTS = 512;

export class Wheel {
  readonly #slots: Set<Scheduled>[] = Array.from({ length: SLOTS }, () => new Set<Scheduled>());
  readonly #slotOf = new Map<Scheduled, Set<Scheduled>>();
  #timer: NodeJS.Timeout | null = null;
  #cursor = Math.floor(Date.now() / SLOT_MS);

  schedule(item: Scheduled, dueAtMs: number): void {
    this.cancel(item);
    this.#timer ??= this.#start();
    item.dueAtMs = dueAtMs;
    // Never into a slot that this turn has already passed: it would wait a whole turn.
    const tick = Math.max(Math.ceil(dueAtMs / SLOT_MS), this.#cursor + 1);
    const slot = this.#slots[tick % SLOTS];
    if (slot === undefined) throw new Error('unreachable: the ring has no such slot');
    slot.add(item);
    this.#slotOf.set(item, slot);
  }

  cancel(item: Scheduled): void {
    this.#slotOf.get(item)?.delete(item);
    this.#slotOf.delete(item);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    for (const slot of this.#slots) slot.clear();
    this.#slotOf.clear();
  }

  #start(): NodeJS.Timeout {
    this.#cursor = Math.floor(Date.now() / SLOT_MS);
    return setInterval(() => this.#turn(), SLOT_MS);
  }

  #turn(): void {
    const nowMs = Date.now();
    // After a long pause one full turn visits every slot, and everything overdue with it.
    const target = Math.floor(nowMs / SLOT_MS);
    this.#cursor = Math.max(this.#cursor, target - SLOTS);
    while (this.#cursor < target) {
      this.#cursor += 1;
      const slot = this.#slots[this.#cursor % SLOTS];
      if (slot !== undefined && slot.size > 0) this.#expire(slot, nowMs);
    }
    if (this.#slotOf.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
  }

  #expire(slot: Set<Scheduled>, nowMs: number): void {
    const due = [...slot].filter((item) => item.dueAtMs <= nowMs);
    for (const item of due) {
      this.cancel(item);
      const nextMs = item.run(nowMs);
      if (nextMs !== null) this.schedule(item, nextMs);
    }
  }
}
