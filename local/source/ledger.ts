/**
 * What a source saw of one connection id: who dialled when, how many sockets were open at once and for how long, how each ended, what
 * was sent. Tests and benches read from it what a fleet's own logs can't prove.
 */

const HISTORY = 50;

export interface Connect {
  at: number;
  socket: number;
  /** The position that the dialler asked to resume from; `null` when it named none. */
  lastSeq: number | null;
}

export interface Disconnect {
  at: number;
  socket: number;
  code: number;
}

export interface Report {
  id: string;
  /** Sockets open now. */
  open: number;
  /** The most sockets that were ever open at once. */
  maxOpen: number;
  dials: number;
  /** Dials that a fault refused or left unanswered. */
  refused: number;
  /** Time in which two or more sockets were open at once. */
  overlapMs: number;
  /** The number that is due now, sent or not. */
  seqNow: number;
  highestSent: number;
  /** How often a number was sent that had been sent before. */
  resent: number;
  sent: number;
  closeCodes: Record<string, number>;
  /** The last 50 of each, oldest first. */
  connects: Connect[];
  disconnects: Disconnect[];
}

export class Ledger {
  #open = 0;
  #maxOpen = 0;
  #dials = 0;
  #refused = 0;
  #overlapMs = 0;
  #overlapSinceMs: number | null = null;
  #closeCodes: Record<string, number> = {};
  #connects: Connect[] = [];
  #disconnects: Disconnect[] = [];
  #sockets = 0;
  highestSent = 0;
  resent = 0;
  sent = 0;

  get open(): number {
    return this.#open;
  }

  dialled(): void {
    this.#dials += 1;
  }

  refused(): void {
    this.#refused += 1;
  }

  /** Returns the number of the socket, which `disconnected` wants back. */
  connected(nowMs: number, lastSeq: number | null): number {
    this.#sockets += 1;
    this.#open += 1;
    this.#maxOpen = Math.max(this.#maxOpen, this.#open);
    if (this.#open === 2) this.#overlapSinceMs = nowMs;
    remember(this.#connects, { at: nowMs, socket: this.#sockets, lastSeq });
    return this.#sockets;
  }

  disconnected(nowMs: number, socket: number, code: number): void {
    this.#open -= 1;
    if (this.#open === 1 && this.#overlapSinceMs !== null) {
      this.#overlapMs += nowMs - this.#overlapSinceMs;
      this.#overlapSinceMs = null;
    }
    this.#closeCodes[code] = (this.#closeCodes[code] ?? 0) + 1;
    remember(this.#disconnects, { at: nowMs, socket, code });
  }

  sentSeq(seq: number): void {
    this.sent += 1;
    if (seq <= this.highestSent) this.resent += 1;
    else this.highestSent = seq;
  }

  /** Forgets what was counted. Open sockets stay counted, and so does what was ever sent. */
  reset(nowMs: number): void {
    this.#maxOpen = this.#open;
    this.#dials = 0;
    this.#refused = 0;
    this.#overlapMs = 0;
    if (this.#overlapSinceMs !== null) this.#overlapSinceMs = nowMs;
    this.#closeCodes = {};
    this.#connects = [];
    this.#disconnects = [];
    this.resent = 0;
    this.sent = 0;
  }

  report(nowMs: number, id: string, seqNow: number): Report {
    return {
      id,
      open: this.#open,
      maxOpen: this.#maxOpen,
      dials: this.#dials,
      refused: this.#refused,
      overlapMs: this.#overlapMs + (this.#overlapSinceMs === null ? 0 : nowMs - this.#overlapSinceMs),
      seqNow,
      highestSent: this.highestSent,
      resent: this.resent,
      sent: this.sent,
      closeCodes: this.#closeCodes,
      connects: this.#connects,
      disconnects: this.#disconnects,
    };
  }
}

function remember<T>(history: T[], entry: T): void {
  history.push(entry);
  if (history.length > HISTORY) history.shift();
}
