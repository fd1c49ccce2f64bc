import { EventEmitter } from 'node:events';
import type { Host } from './host.ts';
import type { Random } from './random.ts';
import type { Happening, Scheduler } from './scheduler.ts';
import type { Peer, SimulatedSource } from './source.ts';

const connecting = 0;
const open = 1;
const closing = 2;
const closed = 3;

/** Messages that one read of the socket brings. */
const mostAtOnce = 20;

type Parts = { scheduler: Scheduler; random: Random; host: Host; source: SimulatedSource };

/** A `WebSocket` of the library ws, as far as worker/socket.ts uses one, to a simulated source. */
export class SimulatedSocket extends EventEmitter {
  readyState: number = connecting;
  isPaused = false;
  readonly #parts: Parts;
  readonly #url: URL;
  #peer: Peer | undefined;
  #next: Happening | undefined;
  /** Neither side hears the other any more, and this side doesn't know. */
  #cut = false;
  #waiting: (() => void)[] = [];

  constructor(parts: Parts, url: URL) {
    super();
    this.#parts = parts;
    this.#url = url;
    parts.scheduler.note('socket.dial', () => `${parts.host.name} ${url.href}`);
    this.#after(() => this.#handshake());
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    for (const arrived of this.#waiting.splice(0)) this.#deliver(arrived);
    this.#stream();
  }

  ping(): void {
    this.#after(() => {
      if (this.#peer && !this.#cut) this.#arrives(() => this.emit('pong'));
    });
  }

  close(code: number): void {
    if (this.readyState === closed || this.readyState === closing) return;
    if (this.readyState === connecting) return this.terminate();
    this.readyState = closing;
    const { source } = this.#parts;
    const peer = this.#peer;
    this.#after(() => {
      if (!peer || this.#cut) return;
      source.close(peer);
      this.#arrives(() => this.#end(code, ''), source.mood.closeMs);
    });
  }

  terminate(): void {
    if (this.readyState === closed) return;
    const early = this.readyState === connecting;
    this.readyState = closing;
    this.#next = undefined;
    this.#leave();
    // The library tells it in a later turn.
    this.#deliver(() => {
      if (early) this.emit('error', new Error('WebSocket was closed before the connection was established'));
      this.#end(1006, '');
    });
  }

  /** The way is cut without a word: the source notices, this side doesn't. */
  cut(): void {
    this.#cut = true;
    if (this.#peer) this.#parts.source.close(this.#peer);
  }

  #handshake(): void {
    const { scheduler, host, source } = this.#parts;
    const { refuse, deaf, retryAfterSeconds } = source.mood;
    if (deaf || this.readyState !== connecting || host.state === 'dead') return;
    if (refuse !== undefined) {
      const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
      return this.#arrives(() => {
        if (this.readyState !== connecting) return;
        const request = { destroy: () => undefined };
        this.emit('unexpected-response', request, { statusCode: refuse, headers });
      });
    }
    const peer = source.accept(host, this.#url, (code, reason) => this.#dropped(code, reason));
    this.#peer = peer;
    host.onDeath.push(() => source.close(peer));
    this.#arrives(() => {
      if (this.readyState !== connecting) return;
      this.readyState = open;
      scheduler.note('socket.open', () => `${host.name} ${this.#url.href}`);
      this.emit('open');
      this.#stream();
    });
  }

  #dropped(code: number, reason: string): void {
    const { source } = this.#parts;
    const peer = this.#peer;
    if (peer) source.close(peer);
    this.#arrives(() => {
      // A reset throws away what the socket hasn't read yet; a proper close comes after it.
      if (peer && code !== 1006) this.#readAll(peer);
      if (code === 1006) this.emit('error', new Error('read ECONNRESET'));
      this.#end(code, reason);
    });
  }

  /** Sees to it that the next message arrives when it has been produced. */
  #stream(): void {
    const peer = this.#peer;
    if (!peer || this.isPaused || this.readyState !== open || (this.#next && !this.#next.cancelled)) return;
    const { scheduler, host, source, random } = this.#parts;
    const atMs = Math.max(scheduler.nowMs, source.producedAtMs(peer.nextIndex)) + random.int(1, 12);
    this.#next = host.deliver(atMs, () => this.#read(peer));
  }

  #read(peer: Peer): void {
    for (let count = 0; count < mostAtOnce; count++) if (!this.#readOne(peer)) break;
    if (!peer.gone || peer.nextIndex < peer.sentUpTo) this.#stream();
  }

  #readAll(peer: Peer): void {
    while (this.#readOne(peer));
  }

  /** @returns whether there was one */
  #readOne(peer: Peer): boolean {
    const { source } = this.#parts;
    const sent = peer.gone ? peer.sentUpTo : source.produced();
    if (peer.nextIndex >= sent || this.isPaused || this.#cut || this.readyState !== open) return false;
    const { data } = source.frame(peer.nextIndex);
    peer.nextIndex++;
    this.emit('message', data, false);
    return true;
  }

  #end(code: number, reason: string): void {
    if (this.readyState === closed) return;
    this.readyState = closed;
    this.#leave();
    this.#parts.scheduler.note('socket.closed', () => `${this.#parts.host.name} ${code}`);
    this.emit('close', code, Buffer.from(reason));
  }

  /** The source hears of the end a moment later. */
  #leave(): void {
    const peer = this.#peer;
    if (peer && !peer.gone) this.#after(() => this.#parts.source.close(peer));
  }

  /** At the source, a moment later. */
  #after(run: () => void): void {
    this.#parts.scheduler.after(this.#parts.random.int(1, 12), run);
  }

  /** Here, a moment later, unless the way is cut by then, and not before a paused socket reads again. */
  #arrives(run: () => void, afterMs = 0): void {
    const { scheduler, random, host } = this.#parts;
    host.deliver(scheduler.nowMs + afterMs + random.int(1, 12), () => {
      if (this.#cut || this.readyState === closed) return;
      if (this.isPaused) this.#waiting.push(run);
      else run();
    });
  }

  /** Here, as soon as anything else can run. */
  #deliver(run: () => void): void {
    this.#parts.host.deliver(this.#parts.scheduler.nowMs, run);
  }
}
