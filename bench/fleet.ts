/** A local system as the cases use it: connections by the hundred, faults in between, and the account at the end. */
import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { ApiClient, SourceClient } from '../local/client.ts';
import { waitFor } from '../local/measure.ts';
import { type StoredMessage, storedMessages } from '../local/messages.ts';
import type { Report } from '../local/source/ledger.ts';
import { System } from '../local/system.ts';
import type { WorkerProcess } from '../local/worker-process.ts';
import { idOf } from '../shared/connection.ts';
import { type DynamoProxy, startDynamoProxy } from '../tests/support/dynamo-proxy.ts';

export interface FleetOptions {
  /** Default 2. */
  workers?: number;
  /** A proxy between the workers and DynamoDB; the functions don't go through it. */
  proxied?: boolean;
  /** For all parts. */
  env?: Record<string, string>;
  /** For the workers alone. */
  workerEnv?: Record<string, string>;
  dir?: string;
  onDied?: (error: Error) => void;
}

export interface StartOptions {
  /** Messages per second; default 1. */
  rate?: number;
  /** Requests underway at the same time; default 10. */
  atOnce?: number;
}

export interface Owned {
  owner: string | null;
  epoch: number;
  expiresAtMs: number;
  lastSeq: number;
  desiredState: string;
  status: string;
}

export interface Account {
  stored: number;
  /** Numbers that were due and aren't in the table. */
  lost: number;
  /** Messages that are in the table more than once. */
  twice: number;
  messages: Map<string, StoredMessage[]>;
}

const STORED_WITHIN_MS = 20_000;

export class Fleet {
  readonly system: System;
  readonly #options: FleetOptions;
  #proxy: DynamoProxy | null = null;
  #starting: Promise<DynamoProxy> | null = null;
  #api: ApiClient | null = null;
  #source: SourceClient | null = null;

  constructor(options: FleetOptions) {
    this.#options = options;
    const { env = {}, dir = '.local/bench', onDied } = options;
    this.system = new System({
      workers: 0,
      env: { ...process.env, ...env },
      dir,
      ...(onDied === undefined ? {} : { onDied }),
    });
  }

  async begin(): Promise<void> {
    await this.system.start();
    this.#api = new ApiClient(this.system.apiUrl, this.system.apiKey);
    this.#source = new SourceClient(this.system.sourceUrl);
    const { workers = 2, proxied = false } = this.#options;
    await Promise.all(Array.from({ length: workers }, () => (proxied ? this.addProxiedWorker() : this.#addWorker())));
  }

  /** One more worker, the only one behind the proxy unless all are. */
  async addProxiedWorker(): Promise<WorkerProcess> {
    this.#starting ??= startDynamoProxy({ target: this.system.dynamodbUrl });
    this.#proxy = await this.#starting;
    return this.#addWorker({ AWS_ENDPOINT_URL_DYNAMODB: this.#proxy.url });
  }

  #addWorker(env: Record<string, string> = {}): Promise<WorkerProcess> {
    return this.system.addWorker({ ...this.#options.workerEnv, ...env });
  }

  /** At once: what was to be measured has been measured. */
  async end(): Promise<void> {
    await this.system.stopNow();
    await this.#proxy?.close();
  }

  get api(): ApiClient {
    return up(this.#api);
  }

  get source(): SourceClient {
    return up(this.#source);
  }

  get proxy(): DynamoProxy {
    return up(this.#proxy);
  }

  url(id: string, rate = 1): string {
    return `${this.system.sourceUrl}/${id}?last_seq={last_seq}&rate=${rate}`;
  }

  /** START through the API. @returns when each was sent, Unix ms */
  async start(ids: string[], { rate = 1, atOnce = 10 }: StartOptions = {}): Promise<Map<string, number>> {
    const sentAtMs = new Map<string, number>();
    await inParallel(ids, atOnce, async (id) => {
      sentAtMs.set(id, Date.now());
      await this.sendStart(id, rate);
    });
    return sentAtMs;
  }

  async sendStart(id: string, rate = 1): Promise<void> {
    const { status, body } = await this.api.start(id, this.url(id, rate));
    if (status >= 300) throw new Error(`START of ${id} was answered with ${status}: ${JSON.stringify(body)}`);
  }

  async sendStop(id: string): Promise<void> {
    const { status, body } = await this.api.stop(id);
    if (status >= 300) throw new Error(`STOP of ${id} was answered with ${status}: ${JSON.stringify(body)}`);
  }

  async reports(ids: string[]): Promise<Report[]> {
    const wanted = new Set(ids);
    return (await this.source.report()).connections.filter(({ id }) => wanted.has(id));
  }

  /** Waits until each of them has one socket, or more. */
  async allOpen(ids: string[], withinMs: number): Promise<Report[]> {
    return waitFor(`${ids.length} connections with a socket each`, withinMs, async () => {
      const reports = await this.reports(ids);
      return reports.length === ids.length && reports.every(({ open }) => open > 0) ? reports : null;
    });
  }

  async allClosed(ids: string[], withinMs: number): Promise<Report[]> {
    return waitFor(`no socket for ${ids.length} connections`, withinMs, async () => {
      const reports = await this.reports(ids);
      return reports.every(({ open }) => open === 0) ? reports : null;
    });
  }

  /** Items of the connections table, by id. */
  async items(): Promise<Map<string, Owned>> {
    const items = new Map<string, Owned>();
    let start: ScanCommand['input']['ExclusiveStartKey'];
    do {
      const input = { TableName: this.system.tables.connections, ConsistentRead: true, ExclusiveStartKey: start };
      const page = await this.system.dynamodb.send(new ScanCommand(input));
      for (const item of page.Items ?? []) {
        items.set(idOf(item.pk?.S ?? ''), {
          owner: item.lease_owner?.S ?? null,
          epoch: Number(item.lease_epoch?.N),
          expiresAtMs: Number(item.lease_expires_at_ms?.N),
          lastSeq: Number(item.last_seq?.S ?? 0),
          desiredState: item.desired_state?.S ?? '',
          status: item.status?.S ?? '',
        });
      }
      start = page.LastEvaluatedKey;
    } while (start !== undefined);
    return items;
  }

  /** Until when each worker's own lease runs, by worker id; Unix ms. */
  async workerLeases(): Promise<Map<string, number>> {
    const answer = await this.system.dynamodb.send(new ScanCommand({ TableName: this.system.tables.workers }));
    return new Map(
      (answer.Items ?? []).map((item) => [item.worker_id?.S ?? '', Number(item.lease_expires_at_ms?.N ?? 0)]),
    );
  }

  /** Stops the flow, waits until what was due is stored, and counts. For connections that are open. */
  async account(ids: string[]): Promise<Account> {
    await this.source.control({ rate: 0 });
    const deadlineMs = Date.now() + STORED_WITHIN_MS;
    for (;;) {
      const account = await this.#count(ids);
      if (account.lost === 0 || Date.now() > deadlineMs) return account;
    }
  }

  async #count(ids: string[]): Promise<Account> {
    const reports = await this.reports(ids);
    const due = new Map(reports.map(({ id, seqNow }) => [id, seqNow]));
    const account: Account = { stored: 0, lost: 0, twice: 0, messages: new Map() };
    await inParallel(ids, 10, async (id) => {
      const messages = await storedMessages(this.system.dynamodb, this.system.tables.messages, id);
      const numbers = new Set(messages.map(({ data }) => (JSON.parse(data) as { seq: number }).seq));
      const seqNow = due.get(id) ?? 0;
      account.messages.set(id, messages);
      account.stored += messages.length;
      account.twice += messages.length - numbers.size;
      account.lost += Math.max(0, seqNow - [...numbers].filter((seq) => seq <= seqNow).length);
    });
    return account;
  }
}

export const idsOf = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index + 1}`);

/** Runs `work` for each, so many at the same time. */
export async function inParallel<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      // One iterator for all of them: each takes the next that is left.
      for (const item of left) await work(item);
    }),
  );
}

function up<T>(part: T | null): T {
  if (part === null) throw new Error('the fleet is not up');
  return part;
}
