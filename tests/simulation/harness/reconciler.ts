import { type ByHandParts, reconcileByHand } from '../../../functions/by-hand.ts';
import { MassGuard } from '../../../functions/mass-guard.ts';
import { sweepThrough } from '../../../functions/sweep.ts';
import { type TaskStoppedParts, taskStopped } from '../../../functions/task-stopped.ts';
import { createMetrics } from '../../../shared/metrics.ts';
import { connectionsTable } from '../../../shared/tables/connections.ts';
import { leasesTable } from '../../../shared/tables/leases.ts';
import { workersTable } from '../../../shared/tables/workers.ts';
import type { Host } from './host.ts';
import type { World } from './world.ts';

/** As deployed: see serverless.yml and functions/reconcile.ts. */
const lambdaMs = 75_000;
const marginMs = 10_000;

/** The reconciler function: invoked by a schedule, killed when it takes too long, and sometimes worse. */
export class Reconciler {
  /** What becomes of the next invocation. */
  next: 'works' | 'absent' | 'hangs' | 'dies' | 'twice' = 'works';
  readonly #world: World;
  readonly #running = new Set<Host>();
  #invocations = 0;
  #schedule = 0;

  constructor(world: World) {
    this.#world = world;
    this.#every(world.random.int(0, 5000));
  }

  /** As if somebody had deployed it anew: whatever runs is ended, and the schedule begins at once. */
  redeploy(): void {
    this.remove();
    this.next = 'works';
    this.#every(0);
  }

  /** Ends whatever runs of it; nothing invokes it any more. */
  remove(): void {
    for (const host of this.#running) host.die('killed');
    this.#schedule++;
  }

  byHand(payload: object): void {
    this.#once('by-hand', (parts) => reconcileByHand(parts, payload));
  }

  /** ECS says that a task is in this state now; whether it is, is another question. */
  taskEvent(taskArn: string, lastStatus: string, statusOf: (taskArn: string) => string): void {
    const event = {
      source: 'aws.ecs' as const,
      'detail-type': 'ECS Task State Change' as const,
      detail: { taskArn, lastStatus },
    };
    this.#once('task-event', (parts) => taskStopped({ ...parts, statusOf: async (arn) => statusOf(arn) }, event));
  }

  /** One invocation that does one thing. A fault is the caller's to see; here nobody looks. */
  #once(name: string, act: (parts: ByHandParts & TaskStoppedParts) => Promise<unknown>): void {
    const { scheduler } = this.#world;
    const host = this.#host(name);
    const log = this.#world.log(host);
    scheduler.after(lambdaMs, () => host.die('killed'));
    host.deliver(scheduler.nowMs, () => {
      act(this.#parts(host)).then(
        (done) => log.info('reconcile.done', { done }),
        (fault: unknown) => log.warn('reconcile.failed', { fault: String(fault) }),
      );
    });
  }

  #every(firstMs: number): void {
    const { scheduler, config } = this.#world;
    const schedule = ++this.#schedule;
    const invoke = () => {
      if (schedule !== this.#schedule) return;
      this.#invoke();
      scheduler.after(config.reconcile.everyMs, invoke);
    };
    scheduler.after(firstMs, invoke);
  }

  #invoke(): void {
    const { scheduler, random, storeNetwork } = this.#world;
    const { next } = this;
    this.next = 'works';
    if (next !== 'works') this.#world.count(`reconciler.${next}`);
    if (next === 'absent') return;
    const hosts = next === 'twice' ? [this.#sweep(), this.#sweep()] : [this.#sweep()];
    for (const host of hosts) {
      const within = random.int(0, 30_000);
      if (next === 'dies') scheduler.after(within, () => host.die('crashed'));
      if (next === 'hangs') scheduler.after(within, () => storeNetwork.silence(host, lambdaMs));
    }
  }

  #sweep(): Host {
    const { scheduler, config, checks } = this.#world;
    const host = this.#host('reconciler');
    const deadlineMs = scheduler.nowMs + lambdaMs;
    scheduler.at(deadlineMs, () => host.die('killed'));
    host.deliver(scheduler.nowMs, () => {
      const remainingMs = () => deadlineMs - scheduler.nowMs;
      sweepThrough(this.#parts(host), { ...config.reconcile, marginMs, remainingMs }).then(
        () => host.die('done'),
        (fault: unknown) => checks.violate(5, `the reconciler ends with ${String(fault)}`),
      );
    });
    return host;
  }

  #host(name: string): Host {
    const host = this.#world.host(`${name}-${++this.#invocations}`);
    this.#running.add(host);
    host.onDeath.push(() => this.#running.delete(host));
    return host;
  }

  #parts(host: Host): ByHandParts & TaskStoppedParts {
    const world = this.#world;
    const { config } = world;
    const log = world.log(host);
    const db = world.dynamodb(host);
    const parts = {
      connections: connectionsTable(db, config.tables.connections, config),
      leases: leasesTable(db, config.tables.connections, config),
      workers: workersTable(db, config.tables.workers),
      lease: config.lease,
      workerLease: config.workerLease,
      guard: new MassGuard(config.lease.forMs),
      seen: { orphans: 0, oldestAgeMs: 0 },
      statusOf: undefined,
      queue: world.queue.from(host, config.requestTimeoutMs),
      shards: config.shards,
      clock: host.clock,
      metrics: createMetrics(async () => undefined, log),
      log,
      random: world.random.fork().real,
    };
    return parts;
  }
}
