import { randomUUID } from 'node:crypto';
import { awsClients } from '../shared/aws.ts';
import { systemClock } from '../shared/clock.ts';
import { type Config, readConfig } from '../shared/config.ts';
import { ConfigError, describe } from '../shared/errors.ts';
import { createLog } from '../shared/log.ts';
import { createMetrics, toCloudWatch, toLog } from '../shared/metrics.ts';
import { sqsQueue } from '../shared/queue.ts';
import { connectionsTable } from '../shared/tables/connections.ts';
import { leasesTable } from '../shared/tables/leases.ts';
import { messagesTable } from '../shared/tables/messages.ts';
import { workersTable } from '../shared/tables/workers.ts';
import type { Context } from './context.ts';
import { touch } from './health.ts';
import { createSink } from './sink.ts';
import { socketOpener } from './socket.ts';
import { runWorker } from './worker.ts';

/** Why the process ended, for whoever restarts it. */
const exitCodes = { drained: 0, crashed: 1, badConfiguration: 2, undrained: 3 };
const socketsToStore = 50;

async function main(): Promise<number> {
  const config = readConfig();
  const stop = new AbortController();
  const over = new AbortController();
  const context = buildContext(config, over.signal);
  const { log, workerId } = context;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      log.info('worker.stopping', { signal });
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
    worker_id: workerId,
    pid: process.pid,
    capacity: config.maxConnections,
    revision: config.revision,
  });
  const { drained } = await runWorker(context, stop.signal, () => touch(config.healthFile, systemClock.now()));
  // Not before: what was read is stored while the worker drains.
  over.abort();
  log.info('worker.ended', { drained });
  return drained ? exitCodes.drained : exitCodes.undrained;
}

/** @param over aborts when nothing is to be stored any more */
function buildContext(config: Config, over: AbortSignal): Context {
  // A fresh id for each process: what an earlier one owned is never taken for ours.
  const workerId = `w-${randomUUID()}`;
  const clock = systemClock;
  const random = Math.random;
  const log = createLog(config.logLevel, { service: config.serviceName, worker: workerId });
  const control = awsClients({ requestTimeoutMs: config.requestTimeoutMs, maxSockets: socketsToStore });
  // Apart, so that a renewal never waits behind messages.
  const bulk = awsClients({ requestTimeoutMs: config.requestTimeoutMs, maxSockets: socketsToStore });
  const target = config.metrics.to === 'log' ? toLog(log) : toCloudWatch(control.cloudwatch, config.serviceName);
  const metrics = createMetrics(target, log);
  const messages = messagesTable(bulk.dynamodb, config.tables.messages, config.sink);
  return {
    workerId,
    config,
    clock,
    random,
    log,
    metrics,
    queue: sqsQueue(control.sqs, { ...config, clock }),
    connections: connectionsTable(control.dynamodb, config.tables.connections, config),
    leases: leasesTable(control.dynamodb, config.tables.connections, config),
    messages,
    workers: workersTable(control.dynamodb, config.tables.workers),
    sink: createSink({ messages, clock, random, log, metrics, bufferBytes: config.sink.bufferBytes, signal: over }),
    openSocket: socketOpener({ config, clock, random }),
  };
}

try {
  process.exitCode = await main();
} catch (fault) {
  const text = fault instanceof ConfigError ? fault.message : describe(fault);
  process.stderr.write(`holdfast worker: ${text.replaceAll('\n', '\nholdfast worker: ')}\n`);
  process.exitCode = fault instanceof ConfigError ? exitCodes.badConfiguration : exitCodes.crashed;
}
