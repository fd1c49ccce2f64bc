import { XRayClient } from '@aws-sdk/client-xray';
import { awsClients, clientOptions, watchDates } from '../shared/aws.ts';
import { systemClock } from '../shared/clock.ts';
import { type Config, readConfig } from '../shared/config.ts';
import { ConfigError, describe } from '../shared/errors.ts';
import { createLog } from '../shared/log.ts';
import { createMetrics, toCloudWatch, toLog } from '../shared/metrics.ts';
import { sqsQueue } from '../shared/queue.ts';
import { ClockSkew } from '../shared/skew.ts';
import { connectionsTable } from '../shared/tables/connections.ts';
import { leasesTable } from '../shared/tables/leases.ts';
import { messagesTable } from '../shared/tables/messages.ts';
import { workersTable } from '../shared/tables/workers.ts';
import type { Context } from './context.ts';
import { touch } from './health.ts';
import { newWorkerId, Presence } from './presence.ts';
import { createSink } from './sink.ts';
import { socketOpener } from './socket.ts';
import { readTaskArn } from './task.ts';
import { Tombstones } from './tombstones.ts';
import { createTraces, toXRay } from './traces.ts';
import { runWorker } from './worker.ts';

/** Why the process ended, for whoever restarts it. */
const exitCodes = { drained: 0, crashed: 1, badConfiguration: 2, undrained: 3, unfenced: 4, 'bad-clock': 5 };
const socketsToStore = 50;
const ownSockets = 8;

async function main(): Promise<number> {
  const config = await withTaskArn(readConfig());
  const stop = new AbortController();
  const over = new AbortController();
  const context = buildContext(config, over.signal);
  const { log, presence } = context;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (!stop.signal.aborted) log.info('worker.stopping', { signal });
      stop.abort();
    });
  }
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    // A process that no longer knows its state must not go on owning anything: its leases run out by themselves.
    process.on(event, (fault: unknown) => {
      log.error('worker.crashed', {
        event,
        fault: describe(fault),
        stack: fault instanceof Error ? fault.stack : undefined,
      });
      process.exit(exitCodes.crashed);
    });
  }
  log.info('worker.started', {
    worker_id: presence.id,
    pid: process.pid,
    capacity: config.maxConnections,
    revision: config.revision,
  });
  const ending = await runWorker(context, stop.signal, () => touch(config.healthFile, systemClock.now()));
  // Not before: what was read is stored while the worker drains.
  over.abort();
  log.info('worker.ended', { ending });
  return exitCodes[ending];
}

async function withTaskArn(config: Config): Promise<Config> {
  return { ...config, taskArn: config.taskArn ?? (await readTaskArn(config.taskMetadataUrl, systemClock)) };
}

/** @param over aborts when nothing is to be stored any more */
function buildContext(config: Config, over: AbortSignal): Context {
  const clock = systemClock;
  const random = Math.random;
  const log = createLog(config.logLevel, { service: config.serviceName }, () => ({ worker: presence.id }));
  const control = awsClients({ requestTimeoutMs: config.requestTimeoutMs, maxSockets: socketsToStore });
  // Apart, so that what keeps leases never waits behind messages, and the worker's own never behind those of connections.
  const bulk = awsClients({ requestTimeoutMs: config.requestTimeoutMs, maxSockets: socketsToStore });
  const own = awsClients({ requestTimeoutMs: config.requestTimeoutMs, maxSockets: ownSockets });
  const target = config.metrics.to === 'log' ? toLog(log) : toCloudWatch(control.cloudwatch, config.serviceName);
  const metrics = createMetrics(target, log);
  const messages = messagesTable(bulk.dynamodb, config.tables.messages, config.sink);
  const workers = workersTable(own.dynamodb, config.tables.workers);
  const presence = new Presence({ config, clock, log, metrics, workers, newId: newWorkerId });
  const skew = new ClockSkew(clock);
  for (const { dynamodb } of [control, own]) watchDates(dynamodb, clock, (sample) => skew.add(sample));
  return {
    presence,
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
    sink: createSink({ messages, clock, random, log, metrics, bufferBytes: config.sink.bufferBytes, signal: over }),
    openSocket: socketOpener({ config, clock, random }),
    traces: config.tracing ? tracesFor(config, { clock, log, metrics }) : undefined,
  };
}

function tracesFor(config: Config, parts: Pick<Context, 'clock' | 'log' | 'metrics'>) {
  const client = new XRayClient(clientOptions({ requestTimeoutMs: config.requestTimeoutMs, maxSockets: 2 }));
  return createTraces({ name: `${config.serviceName}-worker`, send: toXRay(client), ...parts });
}

try {
  // Not left to the event loop: what couldn't be ended in time must end now.
  process.exit(await main());
} catch (fault) {
  const text = fault instanceof ConfigError ? fault.message : describe(fault);
  process.stderr.write(`holdfast worker: ${text.replaceAll('\n', '\nholdfast worker: ')}\n`);
  process.exit(fault instanceof ConfigError ? exitCodes.badConfiguration : exitCodes.crashed);
}
