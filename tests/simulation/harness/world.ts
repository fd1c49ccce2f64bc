import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { type Config, readConfig } from '../../../shared/config.ts';
import { isRefused } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import type { ClockSkew } from '../../../shared/skew.ts';
import { Checks } from './checks.ts';
import { asClient, type Sender, type Sent, storeSender } from './client.ts';
import { beginningMs, Host } from './host.ts';
import { type Kind, kindOf } from './kinds.ts';
import { Network } from './network.ts';
import { SimulatedQueue } from './queue.ts';
import { Random } from './random.ts';
import { Scheduler } from './scheduler.ts';
import { SimulatedSource } from './source.ts';
import { type Command, Store } from './store.ts';
import { newTables, type Table, tableNames } from './table.ts';
import { Trace } from './trace.ts';
import type { Variant } from './variant.ts';

export type Settings = {
  seed: number;
  trace: boolean;
  variant: Variant | undefined;
  workerLease: boolean;
  /** Comes on top of what chance has chosen. */
  environment?: NodeJS.ProcessEnv;
};

/** The key of the item that this request makes, if there is none. */
function createdBy(command: Command): string | undefined {
  if (!(command instanceof UpdateItemCommand)) return undefined;
  const { ConditionExpression, Key } = command.input;
  return ConditionExpression === 'attribute_not_exists(pk)' ? Key?.['pk']?.S : undefined;
}

/** No request is applied later than this after it was sent. */
const latestWriteMs = 60_000;
/** A read that is answered later counts as trouble. */
const promptMs = 100;
/** The most that the script lets an index stay behind. */
export const mostIndexLagMs = 5000;

/**
 * How long a worker that can read may go on with what somebody deleted: until the index shows it, and the next look at all
 * that it owns (which leaves out what is younger than a second), with a read or two that are under way.
 */
function blindMs({ stopCheckMs, requestTimeoutMs }: Config): number {
  return mostIndexLagMs + 1000 + stopCheckMs + 2 * requestTimeoutMs;
}

/** Everything that a simulation consists of, before anything happens in it. */
export class World {
  readonly settings: Settings;
  readonly random: Random;
  readonly trace: Trace;
  readonly scheduler: Scheduler;
  readonly config: Config;
  readonly faults = new Map<string, number>();
  /** How many requests were sent to the store. */
  readonly requests = new Map<Kind, number>();
  readonly sources = new Map<string, SimulatedSource>();
  /** The host behind each worker id that was ever taken. */
  readonly owners = new Map<string, Host>();
  readonly tables: Record<string, Table>;
  readonly store: Store;
  readonly storeNetwork: Network;
  readonly queueNetwork: Network;
  readonly queue: SimulatedQueue;
  readonly checks: Checks;
  /** How long indexes stay behind, and how small their pages are: set anew by the script. */
  indexLagMs = 20;
  pageRows = 3;
  leaveOut = 0;
  /** What happens to the first host that sends a request of this kind, right after it has. */
  trap: { kind: Kind; spring: (host: Host) => void } | undefined;
  readonly #hosts: Host[] = [];
  /** What may still arrive of the STARTs that make a new item. */
  readonly #creating = new Set<{ pk: string; untilMs: number }>();
  readonly #mostSkewMs: number;

  constructor(settings: Settings) {
    this.settings = settings;
    this.random = new Random(settings.seed);
    this.trace = new Trace(settings.trace);
    this.scheduler = new Scheduler(this.random.fork(), this.trace);
    const config = readConfig(environment(settings, this.random.fork()));
    this.#mostSkewMs = config.lease.skewMs / 2;
    this.config = settings.variant?.config?.(config) ?? config;
    this.tables = newTables();
    const { scheduler, faults } = this;
    this.storeNetwork = new Network(scheduler, this.random.fork(), faults, 'store');
    this.queueNetwork = new Network(scheduler, this.random.fork(), faults, 'queue');
    const { longPollSeconds } = this.config;
    this.queue = new SimulatedQueue(scheduler, this.random.fork(), this.queueNetwork, longPollSeconds * 1000);
    this.checks = new Checks({
      scheduler,
      sources: this.sources,
      item: (table, key) => this.tables[table]?.get(key),
      blindMs: blindMs(this.config),
      latestWriteMs,
      hostOf: (workerId) => this.owners.get(workerId),
    });
    const lags = this.random.fork();
    this.store = new Store({
      tables: this.tables,
      nowMs: () => scheduler.nowMs,
      lagMs: () => lags.int(0, this.indexLagMs),
      pageRows: () => this.pageRows,
      batchShare: (entries) => (entries > 1 && lags.chance(this.leaveOut) ? lags.int(0, entries - 1) : entries),
      onWrite: (written) => this.checks.written(written),
    });
  }

  /** A process on a machine whose clock is off by half the allowed difference at most. */
  host(name: string): Host {
    const host = new Host(this.scheduler, this.random.fork(), name, this.skewMs());
    this.#hosts.push(host);
    return host;
  }

  /** Nothing of it is needed any more. */
  forget(): void {
    for (const host of this.#hosts) host.forget();
  }

  skewMs(): number {
    const most = this.#mostSkewMs;
    return this.random.pick([-most, most, this.random.int(-most, most)]);
  }

  /**
   * The DynamoDB client of one host, as the variant under test would have it.
   * @param skew learns from each answer what the store's clock says
   */
  dynamodb(host: Host, skew?: ClockSkew) {
    const { scheduler, store, settings } = this;
    const send: Sender = storeSender({
      scheduler,
      store,
      host,
      random: this.random.fork(),
      network: this.storeNetwork,
      timeoutMs: this.config.requestTimeoutMs,
      onPrepare: (sent) => {
        if (this.random.chance(0.5)) this.#springTrap(sent);
      },
      onSend: (sent) => {
        const kind = kindOf(sent.command);
        this.requests.set(kind, (this.requests.get(kind) ?? 0) + 1);
        this.checks.sent(sent);
        this.#springTrap(sent);
      },
    });
    const watched = this.#watched(send, host);
    const changed = settings.variant?.sender?.(watched, { world: this, host }) ?? watched;
    return asClient(skew ? this.#dated(changed, host, skew) : changed);
  }

  #springTrap({ host, command }: Sent): void {
    const { trap } = this;
    if (!trap || trap.kind !== kindOf(command)) return;
    this.trap = undefined;
    this.scheduler.at(this.scheduler.nowMs, () => trap.spring(host));
  }

  #watched(send: Sender, host: Host): Sender {
    return async (command, options) => {
      const sentMs = this.scheduler.nowMs;
      const answer = send(command, options);
      const created = createdBy(command);
      if (created !== undefined) this.#creates(created, sentMs, answer);
      if (kindOf(command) !== 'read') return answer;
      let failed = true;
      try {
        const read = await answer;
        failed = false;
        return read;
      } finally {
        // Refused for being too much, or cut off, says as little as no answer.
        if (failed || this.scheduler.nowMs - sentMs > promptMs) this.checks.unread(host);
      }
    };
  }

  /** Remembers it until it is certain that it has arrived. */
  #creates(pk: string, sentMs: number, answer: Promise<object>): void {
    const create = { pk, untilMs: sentMs + latestWriteMs };
    this.#creating.add(create);
    const arrived = () => this.#creating.delete(create);
    answer.then(arrived, (fault: unknown) => isRefused(fault) && arrived());
  }

  #dated(send: Sender, { clock }: Host, skew: ClockSkew): Sender {
    return async (command, options) => {
      const sentAtMs = clock.now();
      const answer = await send(command, options);
      const dateMs = Math.floor((beginningMs + this.scheduler.nowMs) / 1000) * 1000;
      skew.add({ sentAtMs, answeredAtMs: clock.now(), dateMs });
      return answer;
    };
  }

  log(host: Host): Log {
    const write =
      (level: string) =>
      (event: string, fields: Record<string, unknown> = {}) =>
        this.scheduler.note(`${level} ${event}`, () => `${host.name} ${JSON.stringify(fields)}`);
    const log: Log = {
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
      with: () => log,
    };
    return log;
  }

  /** Unix ms by no clock in particular. */
  nowMs(): number {
    return beginningMs + this.scheduler.nowMs;
  }

  /** By hand, past all code. @returns whether there was one */
  deleteConnection(pk: string): boolean {
    const table = this.tables[tableNames.connections];
    const before = table?.get(pk);
    if (!table || !before) return false;
    // Epochs begin at the time in seconds: they can't come back as long as they are behind it by more than clocks differ.
    if (Number(before['lease_epoch']?.N ?? 0) * 1000 + 3000 > this.nowMs()) return false;
    // Nor do they hold against such a START that was sent before and arrives after: nothing is left to tell that it is old.
    for (const create of this.#creating) if (create.pk === pk && this.scheduler.nowMs < create.untilMs) return false;
    this.scheduler.note('item.deleted', () => pk);
    table.put(pk, undefined, this.scheduler.nowMs, () => 0);
    this.checks.written({ table: tableNames.connections, key: pk, before, after: undefined });
    return true;
  }

  count(fault: string): void {
    this.faults.set(fault, (this.faults.get(fault) ?? 0) + 1);
  }
}

/** The defaults that matter to the protocol stay; what would only make a simulation longer is shorter. */
function environment(settings: Settings, random: Random): NodeJS.ProcessEnv {
  return {
    CONNECTIONS_TABLE: tableNames.connections,
    WORKERS_TABLE: tableNames.workers,
    MESSAGES_TABLE: tableNames.messages,
    QUEUE_URL: 'queue',
    SHARDS: '2',
    STOP_TIMEOUT: '40',
    SWEEP_EVERY: String(random.pick([5, 5, 5, 1])),
    REDIAL_CAP: '5',
    REDIALS_PER_WORKER: '3',
    MAX_CONNECTIONS: String(random.pick([3, 4, 6, 20, 20, 20])),
    WORKER_LEASE: settings.workerLease ? 'on' : 'off',
    // Seldom so short that it runs out before the end.
    CONNECTION_LEASE_SECONDS: settings.workerLease ? String(random.pick([3600, 3600, 3600, 60])) : '20',
    ...settings.environment,
  };
}
