/**
 * One connection id of a source: its numbers, the sockets that are open for it, what was seen of it. All sockets of one id are told the same
 * numbers, each from where its dialler wanted to resume.
 */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Faults } from './faults.ts';
import { FrameBuilder } from './frames.ts';
import { Ledger, type Report } from './ledger.ts';
import { Sequence } from './sequence.ts';
import type { Scheduled, Wheel } from './wheel.ts';

/** A dialler that is far behind gets so many messages at a time, so that it can't hold up the others. */
const MAX_BURST = 500;
/** A dialler that doesn't read: its socket's buffer is left alone until it has drained. */
const MAX_BUFFERED_BYTES = 1_048_576;
const RETRY_MS = 20;

export interface StreamOptions {
  ratePerSecond: number;
  sizeBytes: number;
  binary: boolean;
}

export class Stream {
  readonly id: string;
  readonly #ledger = new Ledger();
  readonly #sequence: Sequence;
  readonly #frames: FrameBuilder;
  readonly #binary: boolean;
  readonly #wheel: Wheel;
  readonly #sockets = new Set<StreamSocket>();
  faults: Faults = {};

  constructor(id: string, options: StreamOptions, wheel: Wheel) {
    this.id = id;
    this.#sequence = new Sequence(Date.now(), options.ratePerSecond);
    this.#frames = new FrameBuilder(id, options.sizeBytes);
    this.#binary = options.binary;
    this.#wheel = wheel;
  }

  get ledger(): Ledger {
    return this.#ledger;
  }

  get sequence(): Sequence {
    return this.#sequence;
  }

  /** @param raw the TCP socket below `webSocket`, for frames that are built already */
  open(webSocket: WebSocket, raw: Duplex, lastSeq: number | null, faults: () => Faults): void {
    const number = this.#ledger.connected(Date.now(), lastSeq);
    const socket = new StreamSocket({ stream: this, webSocket, raw, cursor: (lastSeq ?? 0) + 1, faults });
    this.#sockets.add(socket);
    const { closeAfterOpenMs, closeCode } = faults();
    const closeTimer =
      typeof closeAfterOpenMs === 'number' ? setTimeout(() => end(webSocket, closeCode), closeAfterOpenMs) : null;
    webSocket.on('ping', (data: Buffer) => {
      if (faults().silent !== true) webSocket.pong(data);
    });
    webSocket.on('error', () => webSocket.terminate());
    webSocket.on('close', (code: number) => {
      if (closeTimer !== null) clearTimeout(closeTimer);
      this.#wheel.cancel(socket);
      this.#sockets.delete(socket);
      this.#ledger.disconnected(Date.now(), number, code);
    });
    this.#arrange(socket);
  }

  setRate(ratePerSecond: number): void {
    this.#sequence.setRate(Date.now(), ratePerSecond);
    for (const socket of this.#sockets) this.#arrange(socket);
  }

  drop(): void {
    for (const socket of this.#sockets) socket.webSocket.terminate();
  }

  report(nowMs: number): Report {
    return this.#ledger.report(nowMs, this.id, this.#sequence.highestAt(nowMs));
  }

  /** Sends what is due on one socket; returns when it wants to be called again. */
  pump(socket: StreamSocket, nowMs: number): number | null {
    const faults = socket.faults();
    if (faults.silent === true || socket.raw.writableLength > MAX_BUFFERED_BYTES) return nowMs + RETRY_MS;
    const binary = faults.binary ?? this.#binary;
    const highest = this.#sequence.highestAt(nowMs);
    const last = Math.min(highest, socket.cursor + MAX_BURST - 1);
    if (socket.cursor < last) socket.raw.cork();
    for (let seq = socket.cursor; seq <= last; seq += 1) {
      socket.raw.write(this.#frames.build(seq, this.#sequence.dueAtMs(seq) ?? nowMs, binary));
      this.#ledger.sentSeq(seq);
    }
    if (socket.cursor < last) socket.raw.uncork();
    socket.cursor = Math.max(socket.cursor, last + 1);
    return last < highest ? nowMs + RETRY_MS : this.#sequence.dueAtMs(socket.cursor);
  }

  #arrange(socket: StreamSocket): void {
    const nextMs = this.pump(socket, Date.now());
    if (nextMs === null) this.#wheel.cancel(socket);
    else this.#wheel.schedule(socket, nextMs);
  }
}

class StreamSocket implements Scheduled {
  readonly #stream: Stream;
  readonly webSocket: WebSocket;
  readonly raw: Duplex;
  readonly faults: () => Faults;
  /** The next number to send. */
  cursor: number;
  dueAtMs = 0;

  constructor(parts: { stream: Stream; webSocket: WebSocket; raw: Duplex; cursor: number; faults: () => Faults }) {
    this.#stream = parts.stream;
    this.webSocket = parts.webSocket;
    this.raw = parts.raw;
    this.cursor = parts.cursor;
    this.faults = parts.faults;
  }

  run(nowMs: number): number | null {
    // After a close frame nothing more may be sent.
    return this.webSocket.readyState === this.webSocket.OPEN ? this.#stream.pump(this, nowMs) : null;
  }
}

function end(webSocket: WebSocket, code: number | null | undefined): void {
  if (typeof code === 'number') webSocket.close(code);
  else webSocket.terminate();
}
