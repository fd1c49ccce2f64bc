import type { IncomingMessage } from 'node:http';
import pLimit, { type LimitFunction } from 'p-limit';
import WebSocket, { type ClientOptions } from 'ws';
import type { Clock, Timer } from '../shared/clock.ts';
import type { Config } from '../shared/config.ts';
import { describe } from '../shared/errors.ts';
import type { Verdict } from '../shared/source.ts';
import { checkedLookup, checkLiteral, ForbiddenAddress } from './lookup.ts';
import { type Action, begin, dueMs, type Event, type State, step } from './protocol.ts';

export type SocketStatus = Extract<Action, { do: 'report' }>;
export type SocketEnd = Extract<Action, { do: 'end' }>;

export type SocketPlan = {
  /** Asked right before each dial: after a freeze, a dial that was due long ago may come before any word of a lost lease. */
  mayDial: () => boolean;
  /** Asked at each dial: the position has moved on since the last. */
  url: () => string;
  onClose: (code: number) => Verdict;
  onRefused: (httpStatus: number) => Verdict;
  /** Failures in a row before this worker had the connection. */
  attempts: number;
  /** @returns whether the socket shall pause, until `resume` is called */
  onFrame: (data: Buffer, binary: boolean) => boolean;
  /** At each handshake that succeeds, also when nothing is reported yet because others failed before. */
  onOpen?: () => void;
  onStatus: (status: SocketStatus) => void;
  onEnd: (end: SocketEnd) => void;
};

/** One connection's way to its source: dials, redials, pings, until it ends or is told to. */
export type SourceSocket = {
  resume(): void;
  /** No frame is passed on any more, and no new dial begins. The socket stays open: the source shall see one clean close. */
  stopReading(): void;
  /** Closes cleanly, and hard when the source takes too long. Resolves when the socket is gone. */
  close(): Promise<void>;
  /** Gone at once. */
  terminate(): void;
};

export type OpenSocket = (plan: SocketPlan) => SourceSocket;

/** A dial that takes longer doesn't keep others waiting: what is limited is the work of handshakes, not patience. */
const dialSlotMs = 1000;
/** A source may ask for a long rest; it can't ask for a week. */
const longestRetryAfterMs = 600_000;
/** Node's own 250 ms per address would give up on far sources that are merely slow to answer (nodejs/node#54359). */
const attemptPerAddressMs = 2000;

/** Begins a handshake. */
export type Connect = (url: URL, options: ClientOptions) => WebSocket;

type Parts = { config: Config; clock: Clock; random: () => number; connect?: Connect };

/** @returns what opens sockets; all that it opens share one limit on dials at once */
export function socketOpener(parts: Parts): OpenSocket {
  const dials = pLimit(parts.config.socket.dialsAtOnce);
  const connect: Connect = (url, options) => new WebSocket(url, options);
  return (plan) => new DrivenSocket({ connect, ...parts }, dials, plan);
}

/** Drives `ws` by the rules of protocol.ts: feeds it events, carries out its actions. */
class DrivenSocket implements SourceSocket {
  readonly #parts: Required<Parts>;
  readonly #dials: LimitFunction;
  readonly #plan: SocketPlan;
  #state: State;
  #socket: WebSocket | undefined;
  #due: Timer | undefined;
  #heardMs: number;
  #reading = true;

  constructor(parts: Required<Parts>, dials: LimitFunction, plan: SocketPlan) {
    this.#parts = parts;
    this.#dials = dials;
    this.#plan = plan;
    this.#heardMs = parts.clock.monotonic();
    this.#state = begin(plan.attempts, this.#heardMs);
    this.#armDue();
  }

  resume(): void {
    if (!this.#reading) return;
    if (this.#socket?.isPaused) this.#socket.resume();
    this.#tell({ type: 'resumed', heardMs: this.#heardMs });
  }

  stopReading(): void {
    this.#reading = false;
    this.#state = { name: 'ended' };
    this.#due?.cancel();
    if (this.#socket?.readyState === WebSocket.CONNECTING) this.#socket.terminate();
  }

  close(): Promise<void> {
    this.stopReading();
    const socket = this.#socket;
    if (!socket || socket.readyState === WebSocket.CLOSED) return Promise.resolve();
    return new Promise((resolve) => {
      // Own deadline: `ws` waits thirty seconds for a peer that says nothing.
      const deadline = this.#parts.clock.timer(this.#parts.config.socket.closeMs, () => socket.terminate());
      socket.once('close', () => {
        deadline.cancel();
        resolve();
      });
      // Paused, it would never see the source's closing frame. `ws` throws when one is resumed that was never open.
      if (socket.isPaused) socket.resume();
      socket.close(1000);
    });
  }

  terminate(): void {
    this.stopReading();
    this.#socket?.terminate();
  }

  #tell(event: Event): void {
    const moment = { atMs: this.#parts.clock.monotonic(), random: this.#parts.random() };
    const { state, actions } = step(this.#state, event, moment, this.#parts.config.socket);
    this.#state = state;
    for (const action of actions) this.#act(action);
    this.#armDue();
  }

  #act(action: Action): void {
    switch (action.do) {
      case 'dial':
        return this.#dialInTurn();
      case 'ping':
        return this.#socket?.ping();
      case 'terminate':
        // Its close event belongs to the past: the state has moved on.
        this.#socket?.removeAllListeners('close');
        this.#socket?.terminate();
        this.#socket = undefined;
        return;
      case 'report':
        return this.#plan.onStatus(action);
      case 'end':
        return this.#plan.onEnd(action);
    }
  }

  #armDue(): void {
    this.#due?.cancel();
    const at = dueMs(this.#state, this.#heardMs, this.#parts.config.socket);
    if (at === undefined) return;
    const { clock } = this.#parts;
    this.#due = clock.timer(Math.max(0, at - clock.monotonic()), () =>
      this.#tell({ type: 'due', heardMs: this.#heardMs }),
    );
  }

  #dialInTurn(): void {
    const state = this.#state;
    void this.#dials(async () => {
      // While it waited for its turn, the holding may have ended, or its lease.
      if (!this.#plan.mayDial() || this.#state !== state) return;
      this.#tell({ type: 'began' });
      await this.#dial();
    });
  }

  /** @returns when the handshake is over, or has taken so long that it needn't keep others waiting */
  #dial(): Promise<void> {
    const { allowedHosts, socket: limits } = this.#parts.config;
    const options = {
      followRedirects: false,
      perMessageDeflate: false,
      maxPayload: limits.maxFrameBytes,
      lookup: checkedLookup(allowedHosts),
      autoSelectFamilyAttemptTimeout: attemptPerAddressMs,
    };
    let socket: WebSocket;
    try {
      const url = new URL(this.#plan.url());
      checkLiteral(url, allowedHosts);
      socket = this.#parts.connect(url, options);
    } catch (fault) {
      this.#tell({ type: 'impossible', reason: describe(fault) });
      return Promise.resolve();
    }
    this.#socket = socket;
    this.#listen(socket);
    return new Promise((resolve) => {
      const slot = this.#parts.clock.timer(dialSlotMs, resolve);
      for (const outcome of ['open', 'close'] as const) {
        socket.once(outcome, () => {
          slot.cancel();
          resolve();
        });
      }
    });
  }

  #listen(socket: WebSocket): void {
    let trouble: Error | undefined;
    let refusal: IncomingMessage | undefined;
    const mine = () => this.#socket === socket;
    const hear = () => {
      this.#heardMs = this.#parts.clock.monotonic();
    };
    socket.on('open', () => {
      hear();
      if (!mine()) return;
      this.#plan.onOpen?.();
      this.#tell({ type: 'opened' });
    });
    socket.on('message', (data: Buffer, binary: boolean) => {
      hear();
      if (this.#reading && mine() && this.#plan.onFrame(data, binary) && !socket.isPaused) {
        socket.pause();
        this.#tell({ type: 'paused' });
      }
    });
    socket.on('ping', hear);
    socket.on('pong', hear);
    // Without a listener, an error ends the process; a close follows in any case.
    socket.on('error', (fault) => {
      trouble ??= fault;
    });
    // Without this listener there is no status to decide by; with it, the request must be ended here.
    socket.on('unexpected-response', (request, response) => {
      refusal = response;
      request.destroy();
      socket.terminate();
    });
    socket.on('close', (code, reason) => {
      if (!mine()) return;
      this.#socket = undefined;
      this.#tell(this.#ending(code, reason.toString('utf8'), trouble, refusal));
    });
  }

  /** What a socket's end means. The body of a refused handshake is never read, stored or passed on. */
  #ending(code: number, text: string, trouble: Error | undefined, refusal: IncomingMessage | undefined): Event {
    if (refusal) {
      const httpStatus = refusal.statusCode ?? 0;
      const retryAfterMs = retryAfter(refusal.headers['retry-after']);
      return {
        type: 'refused',
        verdict: this.#plan.onRefused(httpStatus),
        reason: `handshake refused: HTTP ${httpStatus}`,
        retryAfterMs,
      };
    }
    if (trouble instanceof ForbiddenAddress) return { type: 'impossible', reason: trouble.message };
    const why = trouble ? describe(trouble) : `closed by the source: ${code}${text === '' ? '' : ` ${text}`}`;
    return { type: 'closed', verdict: this.#plan.onClose(code), reason: why };
  }
}

/** Seconds, as sources send it; an HTTP date is answered by our own backoff. RFC 9110, 10.2.3. */
function retryAfter(header: string | undefined): number | undefined {
  const seconds = Number(header);
  if (header === undefined || !Number.isFinite(seconds) || seconds < 0) return undefined;
  return Math.min(seconds * 1000, longestRetryAfterMs);
}
