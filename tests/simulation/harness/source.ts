import type { Host } from './host.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';

export type StreamShape = {
  pk: string;
  numbered: boolean;
  /** Between two messages. */
  everyMs: number;
  firstMs: number;
  /** From one number to the next: sources may leave some out. */
  stride: number;
};

/** One message of a source: the same one whoever asks for it. */
export type Frame = { index: number; seq: number; data: Buffer };

/** How the source treats who comes. */
export type Mood = {
  /** HTTP status instead of an open socket. */
  refuse: number | undefined;
  retryAfterSeconds: number | undefined;
  /** Handshakes are never answered. */
  deaf: boolean;
  /** A closing handshake takes this long. */
  closeMs: number;
};

export const goodMood: Mood = { refuse: undefined, retryAfterSeconds: undefined, deaf: false, closeMs: 5 };

/** The source's end of one socket. */
export type Peer = {
  readonly host: Host;
  readonly url: URL;
  readonly openedMs: number;
  /** The next message to send, by index. */
  nextIndex: number;
  /** The source has ended it, or noticed its end. */
  gone: boolean;
  /** How far it had sent by then. */
  sentUpTo: number;
  /** The source ends it. */
  drop: (code: number, reason: string) => void;
};

/** What one connection leads to: messages by the clock, and the sockets that are open to them. */
export class SimulatedSource {
  readonly shape: StreamShape;
  mood = goodMood;
  readonly open = new Set<Peer>();
  readonly #scheduler: Scheduler;
  readonly #random: Random;

  constructor(scheduler: Scheduler, random: Random, shape: StreamShape) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.shape = shape;
  }

  /** How many messages there are by now. */
  produced(nowMs = this.#scheduler.nowMs): number {
    const { firstMs, everyMs } = this.shape;
    return nowMs < firstMs ? 0 : Math.floor((nowMs - firstMs) / everyMs) + 1;
  }

  producedAtMs(index: number): number {
    return this.shape.firstMs + index * this.shape.everyMs;
  }

  frame(index: number): Frame {
    const { pk, numbered, stride } = this.shape;
    const seq = (index + 1) * stride;
    const text = numbered ? JSON.stringify({ seq, of: pk }) : `${pk} ${index}`;
    return { index, seq, data: Buffer.from(text) };
  }

  /** The index of the first message after a number. */
  indexAfter(seq: number): number {
    return Math.floor(seq / this.shape.stride);
  }

  /** Opens the source's end. A numbered one goes on after the number in the URL, the others from now on. */
  accept(host: Host, url: URL, drop: Peer['drop']): Peer {
    const lastSeq = Number(url.searchParams.get('last_seq') ?? '0');
    const nextIndex = this.shape.numbered ? this.indexAfter(lastSeq) : this.produced();
    const peer: Peer = { host, url, openedMs: this.#scheduler.nowMs, nextIndex, gone: false, sentUpTo: 0, drop };
    this.open.add(peer);
    return peer;
  }

  close(peer: Peer): void {
    if (peer.gone) return;
    peer.gone = true;
    peer.sentUpTo = this.produced();
    this.open.delete(peer);
  }

  dropAll(code: number, reason: string): void {
    for (const peer of this.#random.shuffle([...this.open])) peer.drop(code, reason);
  }
}
