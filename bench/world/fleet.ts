/** A fleet in simulated time: its workers, its reconciler on its schedule, and what the two do to the tables. */
import { sweepThrough } from '../../functions/sweep.ts';
import { type TaskStateChange, taskStopped } from '../../functions/task-stopped.ts';
import { type Config, readConfig } from '../../shared/config.ts';
import { pkOf } from '../../shared/connection.ts';
import { sqsQueue } from '../../shared/queue.ts';
import { connectionsTable } from '../../shared/tables/connections.ts';
import type { Item } from '../../shared/tables/item.ts';
import { runWorker } from '../../worker/worker.ts';
import { clientsOf, type Latencies, type Services, usualLatencies } from './clients.ts';
import { Ledger } from './ledger.ts';
import { type ReconcilerParts, reconcilerParts, workerContext } from './parts.ts';
import { QueueService } from './queue-service.ts';
import type { SourceTraffic } from './sockets.ts';
import { Store } from './store.ts';
import { tableNames } from './tables.ts';
import { type Host, seeded, Time } from './time.ts';

export type FleetOptions = {
  connections: number;
  workers: number;
  /** The configuration's variables. */
  env: Record<string, string>;
  traffic: SourceTraffic;
  latencies?: Latencies;
  /** How long an index stays behind its table. */
  indexLagMs?: number;
  /** How old the number of waiting wake-ups is that the queue tells. */
  depthLagMs?: number;
  onWrite?: (table: string, before: Item | undefined, after: Item) => void;
};

export type Member = { host: Host; taskArn: string; workerId: () => string };

/** Of functions/reconcile.ts and serverless.yml. */
const marginMs = 10_000;
const timeoutMs = 75_000;
const askEcsMs = 50;
/** EventBridge's schedule. */
const scheduleMs = 60_000;

export class SimulatedFleet {
  readonly time = new Time();
  readonly ledger = new Ledger();
  readonly store: Store;
  readonly queue: QueueService;
  readonly members: Member[] = [];
  readonly config: Config;
  readonly options: FleetOptions;
  /** How long each sweep of the schedule took. */
  readonly sweepsMs: number[] = [];
  readonly #services: Services;
  #open = 0;

  constructor(options: FleetOptions) {
    const { indexLagMs = 50, depthLagMs = 0, latencies = usualLatencies } = options;
    this.options = options;
    const { time, ledger } = this;
    this.config = configOf(options.env);
    this.queue = new QueueService(time, depthLagMs);
    this.store = new Store({
      nowMs: () => time.nowMs,
      indexLagMs,
      onWrite: (table, before, after) => {
        if (table === tableNames.connections) this.#count(before, after);
        options.onWrite?.(table, before, after);
      },
    });
    this.#services = { time, store: this.store, queue: this.queue, ledger, latencies, random: seeded(1) };
  }

  /** Starts the workers, starts every connection, and lets time go on until all are open. */
  async begin(): Promise<void> {
    const { connections, workers } = this.options;
    for (let index = 0; index < workers; index++) this.#startWorker(index);
    // All take part from the first wake-up on, so that each gets about as many.
    await this.time.runFor(2 * this.config.lease.heartbeatMs);
    this.#startAll(connections);
    await this.time.run(() => this.#open === connections);
  }

  /** The reconciler, once a minute from now on. */
  schedule(): void {
    const host = { name: 'reconciler', alive: true };
    const parts = this.#timed(reconcilerParts(this.#services, this.config, host, askEcsMs));
    const { time, ledger } = this;
    const invoke = () => {
      time.after(scheduleMs, invoke);
      const startedMs = time.nowMs;
      const remainingMs = () => timeoutMs - (time.nowMs - startedMs);
      ledger.invocations++;
      void sweepThrough(parts, { ...this.config.reconcile, marginMs, remainingMs }).then(() => {
        ledger.lambdaMs += time.nowMs - startedMs;
      });
    };
    invoke();
  }

  /** As the machine under it does: no goodbye. */
  kill(members: Member[]): void {
    for (const { host } of members) host.alive = false;
  }

  /** "ECS Task State Change" reaches Lambda: a container of its own for each event that comes at the same time. */
  async reportStopped(member: Member, coldStartMs: number): Promise<void> {
    const { time, ledger } = this;
    await time.pass(coldStartMs);
    const startedMs = time.nowMs;
    ledger.invocations++;
    const parts = reconcilerParts(this.#services, this.config, { name: 'event', alive: true }, askEcsMs);
    const event: TaskStateChange = {
      source: 'aws.ecs',
      'detail-type': 'ECS Task State Change',
      detail: { taskArn: member.taskArn, lastStatus: 'STOPPED' },
    };
    await taskStopped(parts, event);
    ledger.lambdaMs += time.nowMs - startedMs;
  }

  #startWorker(index: number): void {
    const host = { name: `worker ${index}`, alive: true };
    const taskArn = `arn:aws:ecs:us-east-1:123456789012:task/holdfast-prod/${index.toString(16).padStart(32, '0')}`;
    const config = { ...this.config, taskArn };
    const context = workerContext(this.#services, config, host, this.options.traffic);
    this.members.push({ host, taskArn, workerId: () => context.presence.id });
    // Never at the same time: their heartbeats would fall together for good.
    const { time } = this;
    time.after(this.#services.random() * config.lease.heartbeatMs, () => {
      void runWorker(context, new AbortController().signal, () => {});
    });
  }

  /** As START writes it, and the wake-up that follows. None of it is counted. */
  #startAll(connections: number): void {
    const host = { name: 'setup', alive: true };
    const aws = clientsOf(this.#services, host, 'setup');
    const clock = this.time.clockOf(host);
    const table = connectionsTable(aws.dynamodb, tableNames.connections, this.config);
    const queue = sqsQueue(aws.sqs, { ...this.config, clock });
    for (let index = 0; index < connections; index++) {
      const id = `meeting-${String(index).padStart(8, '0')}`;
      const wsUrl = `wss://transcripts.example.com/v1/meetings/${id}/stream?after={last_seq}&token=${'t'.repeat(64)}`;
      const intent = {
        desiredState: 'STARTED',
        wsUrl,
        source: { name: 'numbered' },
        generation: 1,
        status: 'PENDING',
      } as const;
      void table.want(pkOf(id), intent, undefined, clock.now()).then(() => queue.send({ pk: pkOf(id) }));
    }
  }

  #timed(parts: ReconcilerParts): ReconcilerParts {
    const { metrics } = parts;
    let startedMs = 0;
    // A sweep begins with counting itself, and ends with publishing.
    return {
      ...parts,
      metrics: {
        ...metrics,
        count: (name, by) => {
          if (name === 'Sweeps') startedMs = this.time.nowMs;
          metrics.count(name, by);
        },
        publish: () => {
          this.sweepsMs.push(this.time.nowMs - startedMs);
          return metrics.publish();
        },
      },
    };
  }

  #count(before: Item | undefined, after: Item): void {
    if (before?.['status']?.S !== 'OPEN' && after['status']?.S === 'OPEN') this.#open++;
    if (before?.['status']?.S === 'OPEN' && after['status']?.S !== 'OPEN') this.#open--;
  }
}

function configOf(env: Record<string, string>): Config {
  return readConfig({
    CONNECTIONS_TABLE: tableNames.connections,
    WORKERS_TABLE: tableNames.workers,
    MESSAGES_TABLE: tableNames.messages,
    QUEUE_URL: 'https://sqs.us-east-1.amazonaws.com/123456789012/holdfast-prod-wake-up',
    ...env,
  });
}
