/** The real worker and the real reconciler, put together as their entry points do, over AWS in memory. */
import { type DeadWorkersParts } from '../../functions/dead-workers.ts';
import { MassGuard } from '../../functions/mass-guard.ts';
import type { SweepParts } from '../../functions/sweep.ts';
import type { TaskStoppedParts } from '../../functions/task-stopped.ts';
import type { Config } from '../../shared/config.ts';
import type { Log } from '../../shared/log.ts';
import { createMetrics, toCloudWatch } from '../../shared/metrics.ts';
import { sqsQueue } from '../../shared/queue.ts';
import { ClockSkew } from '../../shared/skew.ts';
import { connectionsTable } from '../../shared/tables/connections.ts';
import { leasesTable } from '../../shared/tables/leases.ts';
import { messagesTable } from '../../shared/tables/messages.ts';
import { workersTable } from '../../shared/tables/workers.ts';
import type { Context } from '../../worker/context.ts';
import { newWorkerId, Presence } from '../../worker/presence.ts';
import { createSink } from '../../worker/sink.ts';
import { Tombstones } from '../../worker/tombstones.ts';
import { clientsOf, type Services } from './clients.ts';
import { type SourceTraffic, socketsTo } from './sockets.ts';
import type { Host } from './time.ts';

const quiet = () => {};
const log: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet, with: () => log };

/** As worker/main.ts builds it; only the sockets pretend. */
export function workerContext(services: Services, config: Config, host: Host, traffic: SourceTraffic): Context {
  const { time, random } = services;
  const clock = time.clockOf(host);
  const skew = new ClockSkew(clock);
  const control = clientsOf(services, host, 'worker', (sample) => skew.add(sample));
  const bulk = clientsOf(services, host, 'worker');
  const metrics = createMetrics(toCloudWatch(control.cloudwatch, config.serviceName), log);
  const messages = messagesTable(bulk.dynamodb, config.tables.messages, config.sink);
  const workers = workersTable(control.dynamodb, config.tables.workers);
  const signal = new AbortController().signal;
  return {
    presence: new Presence({ config, clock, log, metrics, workers, newId: newWorkerId }),
    tombstones: new Tombstones(workers),
    skew,
    config,
    clock,
    random,
    log,
    metrics,
    queue: sqsQueue(control.sqs, { ...config, clock }),
    connections: connectionsTable(control.dynamodb, config.tables.connections, config),
    leases: leasesTable(control.dynamodb, config.tables.connections, config),
    messages,
    workers,
    sink: createSink({ messages, clock, random, log, metrics, bufferBytes: config.sink.bufferBytes, signal }),
    openSocket: socketsTo(traffic, time, host, config.socket.dialsAtOnce, random),
  };
}

export type ReconcilerParts = SweepParts & DeadWorkersParts & TaskStoppedParts;

/** As functions/reconcile.ts builds it: one container. @param askEcsMs how long ECS takes to say what it knows of a task */
export function reconcilerParts(services: Services, config: Config, host: Host, askEcsMs: number): ReconcilerParts {
  const clock = services.time.clockOf(host);
  const aws = clientsOf(services, host, 'reconciler');
  return {
    connections: connectionsTable(aws.dynamodb, config.tables.connections, config),
    leases: leasesTable(aws.dynamodb, config.tables.connections, config),
    workers: workersTable(aws.dynamodb, config.tables.workers),
    lease: config.lease,
    workerLease: config.workerLease,
    guard: new MassGuard(config.lease.forMs),
    seen: { orphans: 0, oldestAgeMs: 0 },
    statusOf: async () => {
      await clock.sleep(askEcsMs);
      return 'STOPPED';
    },
    queue: sqsQueue(aws.sqs, { ...config, clock }),
    shards: config.shards,
    clock,
    metrics: createMetrics(toCloudWatch(aws.cloudwatch, config.serviceName), log),
    log,
    random: services.random,
  };
}
