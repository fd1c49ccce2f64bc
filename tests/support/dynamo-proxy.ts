/**
 * A proxy in front of DynamoDB that makes go wrong what goes wrong on a network: answers that get lost after the write was applied, delays,
 * throttling, silence. And it counts: requests by operation, and how often each item was put.
 *
 * In the test's process (`startDynamoProxy`), or as one of its own: `node tests/support/dynamo-proxy.ts --target http://127.0.0.1:8000`,
 * with `POST /__control` (a `Faults`) and `GET /__counts`.
 */
import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { reportReady } from '../../local/ready.ts';

const faultsSchema = z.strictObject({
  /** Loses the answer of one of so many successful writes; 0 loses none. */
  dropAnswerEvery: z.int().min(0).optional(),
  /** Before each request is passed on. */
  delayMs: z.number().min(0).optional(),
  /** Answers one of so many requests with `failWith`, unapplied; 0 none. */
  failEvery: z.int().min(0).optional(),
  failWith: z.enum(['ThrottlingException', 'ProvisionedThroughputExceededException', 'InternalServerError']).optional(),
  /** From now on for so long: takes requests and answers nothing; what it took by then is dropped unapplied. */
  silentForMs: z.number().min(0).optional(),
  /** Only these operations are hit; without it, all. */
  operations: z.array(z.string()).optional(),
  /** Also counts each (table, pk, sk) that is put: reads every body, so it costs. */
  countPuts: z.boolean().optional(),
});

export type Faults = z.infer<typeof faultsSchema>;

export interface Counts {
  byOperation: Record<string, number>;
  droppedAnswers: number;
  failed: number;
  /** Requests that silence swallowed. */
  swallowed: number;
  /** Items that were put more than once, as `table|pk|sk`, and how often. */
  putTwice: Record<string, number>;
  puts: number;
}

export interface DynamoProxy {
  readonly url: string;
  readonly port: number;
  /** Changes what is named, leaves the rest. */
  control(faults: Faults): void;
  counts(): Counts;
  /** Counts from zero. */
  resetCounts(): void;
  close(): Promise<void>;
}

export async function startDynamoProxy(options: { target: string; port?: number }): Promise<DynamoProxy> {
  const proxy = new Proxy(new URL(options.target));
  const server = createServer((request, response) => proxy.handle(request, response));
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const port = address === null || typeof address === 'string' ? 0 : address.port;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    control: (faults) => proxy.control(faults),
    counts: () => proxy.counts(),
    resetCounts: () => proxy.resetCounts(),
    async close() {
      proxy.close();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

const WRITES = new Set(['PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem']);

class Proxy {
  readonly #target: URL;
  readonly #agent = new Agent({ keepAlive: true });
  #faults: Faults = {};
  #silent: NodeJS.Timeout | null = null;
  readonly #held = new Set<ServerResponse>();
  #writes = 0;
  #requests = 0;
  #putCounts = new Map<string, number>();
  #counts = { byOperation: {} as Record<string, number>, droppedAnswers: 0, failed: 0, swallowed: 0, puts: 0 };

  constructor(target: URL) {
    this.#target = target;
  }

  control(faults: Faults): void {
    this.#faults = { ...this.#faults, ...faultsSchema.parse(faults) };
    if (faults.silentForMs === undefined) return;
    if (this.#silent !== null) clearTimeout(this.#silent);
    this.#silent = setTimeout(() => this.#speakAgain(), faults.silentForMs);
  }

  counts(): Counts {
    const twice = [...this.#putCounts].filter(([, count]) => count > 1);
    return { ...structuredClone(this.#counts), putTwice: Object.fromEntries(twice) };
  }

  resetCounts(): void {
    this.#counts = { byOperation: {}, droppedAnswers: 0, failed: 0, swallowed: 0, puts: 0 };
    this.#putCounts = new Map();
  }

  close(): void {
    if (this.#silent !== null) clearTimeout(this.#silent);
    this.#agent.destroy();
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => this.#take(request, response, Buffer.concat(chunks)));
    // The caller gave up: there is nobody to answer.
    request.on('error', () => response.destroy());
  }

  #take(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    if (request.url?.startsWith('/__') === true) return this.#manage(request, response, body);
    const operation = String(request.headers['x-amz-target']).split('.').at(-1) ?? '';
    this.#counts.byOperation[operation] = (this.#counts.byOperation[operation] ?? 0) + 1;
    const hit = this.#faults.operations?.includes(operation) ?? true;
    if (hit && this.#silent !== null) {
      this.#counts.swallowed += 1;
      this.#held.add(response);
      response.once('close', () => this.#held.delete(response));
      return;
    }
    if (hit && this.#isNth(this.#faults.failEvery, ++this.#requests)) return this.#refuse(response);
    const delayMs = hit ? (this.#faults.delayMs ?? 0) : 0;
    const forward = (): void => this.#forward(request, response, body, operation, hit);
    if (delayMs > 0) setTimeout(forward, delayMs);
    else forward();
  }

  #forward(request: IncomingMessage, response: ServerResponse, body: Buffer, operation: string, hit: boolean): void {
    const outgoing = httpRequest({
      host: this.#target.hostname,
      port: this.#target.port,
      method: request.method,
      path: request.url,
      headers: { ...request.headers, 'content-length': body.length },
      agent: this.#agent,
    });
    outgoing.on('error', () => response.destroy());
    outgoing.on('response', (answer) => {
      const applied = WRITES.has(operation) && answer.statusCode === 200;
      if (applied && this.#faults.countPuts === true) this.#countPuts(operation, body);
      if (applied && hit && this.#isNth(this.#faults.dropAnswerEvery, ++this.#writes)) {
        this.#counts.droppedAnswers += 1;
        answer.resume();
        response.destroy();
        return;
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.on('error', () => response.destroy());
    });
    outgoing.end(body);
  }

  #refuse(response: ServerResponse): void {
    this.#counts.failed += 1;
    const type = this.#faults.failWith ?? 'InternalServerError';
    response.writeHead(type === 'InternalServerError' ? 500 : 400, { 'content-type': 'application/x-amz-json-1.0' });
    response.end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, message: 'injected' }));
  }

  #speakAgain(): void {
    this.#silent = null;
    for (const response of this.#held) response.destroy();
  }

  #isNth(every: number | undefined, count: number): boolean {
    return every !== undefined && every > 0 && count % every === 0;
  }

  #countPuts(operation: string, body: Buffer): void {
    if (operation !== 'PutItem' && operation !== 'BatchWriteItem') return;
    const sent = JSON.parse(body.toString('utf8')) as PutBody;
    if (sent.TableName !== undefined && sent.Item !== undefined) this.#countPut(sent.TableName, sent.Item);
    for (const [table, requests] of Object.entries(sent.RequestItems ?? {})) {
      for (const { PutRequest: put } of requests) if (put !== undefined) this.#countPut(table, put.Item);
    }
  }

  #countPut(table: string, item: PutItem): void {
    this.#counts.puts += 1;
    const key = `${table}|${item.pk?.S ?? item.worker_id?.S ?? ''}|${item.sk?.S ?? ''}`;
    this.#putCounts.set(key, (this.#putCounts.get(key) ?? 0) + 1);
  }

  #manage(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const reply = (status: number, answer: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    };
    if (request.method === 'GET' && request.url === '/__counts') return reply(200, this.counts());
    if (request.method === 'POST' && request.url === '/__control') {
      const faults = z.preprocess((text) => JSON.parse(String(text)), faultsSchema).safeParse(body.toString('utf8'));
      if (!faults.success) return reply(400, { message: z.prettifyError(faults.error) });
      this.control(faults.data);
      return reply(200, { ok: true });
    }
    reply(404, { message: 'GET /__counts or POST /__control' });
  }
}

type PutItem = Record<string, { S?: string } | undefined>;

interface PutBody {
  TableName?: string;
  Item?: PutItem;
  RequestItems?: Record<string, { PutRequest?: { Item: PutItem } }[]>;
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { target: { type: 'string' }, port: { type: 'string', default: '0' } } });
  if (values.target === undefined) throw new Error('--target is missing: the URL of DynamoDB');
  const proxy = await startDynamoProxy({ target: values.target, port: Number(values.port) });
  reportReady(proxy.port, () => proxy.close());
}
