/** The source's server: WebSockets to dial, `GET /report` to read what happened, `POST /control` to make things go wrong; one port. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { type Control, controlSchema, type Faults, mergeFaults } from './faults.ts';
import type { Report } from './ledger.ts';
import { Stream } from './stream.ts';
import { Wheel } from './wheel.ts';

const MAX_BODY_BYTES = 65_536;
const DEFAULT_RATE_PER_SECOND = 1;
const MAX_SIZE_BYTES = 1_000_000;

export interface SourceSummary {
  ids: number;
  open: number;
  /** Ids for which two or more sockets were open at once at any time. */
  heldTwice: number;
  overlapMs: number;
  dials: number;
  refused: number;
  sent: number;
  resent: number;
}

export interface FullReport {
  now: number;
  summary: SourceSummary;
  connections: Report[];
}

export interface SourceServer {
  port: number;
  close(): Promise<void>;
}

export async function startSourceServer(port: number): Promise<SourceServer> {
  const source = new Source();
  const server = createServer((request, response) => source.answer(request, response));
  server.on('upgrade', (request, socket, head) => source.upgrade(request, socket, head));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    // The backlog has to take a whole fleet that dials at once.
    server.listen({ port, host: '127.0.0.1', backlog: 4096 }, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      source.close();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

class Source {
  readonly #wheel = new Wheel();
  readonly #streams = new Map<string, Stream>();
  readonly #unanswered = new Set<Duplex>();
  // No ping is answered by the server itself: a half-open source mustn't.
  readonly #webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, autoPong: false });
  #faultsForAll: Faults = {};

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    const url = new URL(request.url ?? '/', 'ws://source');
    const stream = this.#stream(url);
    stream.ledger.dialled();
    const faults = (): Faults => effective(this.#faultsForAll, stream.faults);
    const { neverAccept, refuseStatus, retryAfterSeconds } = faults();
    if (neverAccept === true) {
      stream.ledger.refused();
      this.#unanswered.add(socket);
      socket.once('close', () => this.#unanswered.delete(socket));
      // Without a reader the end of the other side would never be noticed.
      socket.resume();
      return;
    }
    if (typeof refuseStatus === 'number') {
      stream.ledger.refused();
      const retryAfter = typeof retryAfterSeconds === 'number' ? `Retry-After: ${retryAfterSeconds}\r\n` : '';
      socket.end(`HTTP/1.1 ${refuseStatus} Refused\r\n${retryAfter}Content-Length: 0\r\nConnection: close\r\n\r\n`);
      return;
    }
    const lastSeq = url.searchParams.get('last_seq');
    this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      stream.open(webSocket, socket, lastSeq === null || lastSeq === '' ? null : Number(lastSeq), faults);
    });
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://source');
    if (request.method === 'GET' && url.pathname === '/report') {
      const id = url.searchParams.get('id');
      if (id === null) return reply(response, 200, this.#report());
      const stream = this.#streams.get(id);
      if (stream === undefined) return reply(response, 404, { message: 'never dialled' });
      return reply(response, 200, stream.report(Date.now()));
    }
    if (request.method === 'POST' && url.pathname === '/control') {
      readBody(request)
        .then((body) => this.#control(controlSchema.parse(JSON.parse(body))))
        .then(
          () => reply(response, 200, { ok: true }),
          (error: unknown) => reply(response, 400, { message: String(error) }),
        );
      return;
    }
    reply(response, 404, { message: 'GET /report, POST /control, or a WebSocket to /<connection id>' });
  }

  close(): void {
    this.#wheel.stop();
    for (const stream of this.#streams.values()) stream.drop();
    for (const socket of this.#unanswered) socket.destroy();
    this.#webSockets.close();
  }

  /** The first dial of an id settles its rate, size and kind of frames. */
  #stream(url: URL): Stream {
    const id = decodeURIComponent(url.pathname.slice(1));
    let stream = this.#streams.get(id);
    if (stream === undefined) {
      const ratePerSecond = this.#faultsForAll.rate ?? numberIn(url, 'rate', DEFAULT_RATE_PER_SECOND, 10_000);
      const sizeBytes = numberIn(url, 'size', 16, MAX_SIZE_BYTES);
      const binary = url.searchParams.get('binary') === '1';
      stream = new Stream(id, { ratePerSecond, sizeBytes, binary }, this.#wheel);
      this.#streams.set(id, stream);
    }
    return stream;
  }

  #control(control: Control): void {
    // A fault for an id that nobody has dialled yet is kept for it; its numbers then begin here.
    const one =
      control.id === undefined ? null : this.#stream(new URL(`/${encodeURIComponent(control.id)}`, 'ws://source'));
    if (one === null) this.#faultsForAll = mergeFaults(this.#faultsForAll, control);
    else one.faults = mergeFaults(one.faults, control);
    const nowMs = Date.now();
    for (const stream of one === null ? this.#streams.values() : [one]) {
      if (typeof control.rate === 'number') stream.setRate(control.rate);
      if (control.reset === true) stream.ledger.reset(nowMs);
      if (control.dropAll === true) stream.drop();
    }
    if (control.dropAll === true) for (const socket of this.#unanswered) socket.destroy();
  }

  #report(): FullReport {
    const now = Date.now();
    const connections = [...this.#streams.values()].map((stream) => stream.report(now));
    const sum = (of: (report: Report) => number): number => connections.reduce((total, one) => total + of(one), 0);
    return {
      now,
      summary: {
        ids: connections.length,
        open: sum((one) => one.open),
        heldTwice: sum((one) => (one.maxOpen > 1 ? 1 : 0)),
        overlapMs: sum((one) => one.overlapMs),
        dials: sum((one) => one.dials),
        refused: sum((one) => one.refused),
        sent: sum((one) => one.sent),
        resent: sum((one) => one.resent),
      },
      connections,
    };
  }
}

/** What is said for one connection goes before what is said for all. */
function effective(forAll: Faults, forOne: Faults): Faults {
  const said = Object.entries(forOne).filter(([, value]) => value !== null && value !== undefined);
  return said.length === 0 ? forAll : { ...forAll, ...Object.fromEntries(said) };
}

function numberIn(url: URL, name: string, fallback: number, max: number): number {
  const text = url.searchParams.get(name);
  const value = text === null ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= 0 && value <= max ? value : fallback;
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new Error(`body over ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
