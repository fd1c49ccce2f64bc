/** A whole worker in the test's own process, over the embedded AWS: everything is real but its sockets, its log and its metrics. */
import { systemClock as clock } from '../../shared/clock.ts';
import { sqsQueue } from '../../shared/queue.ts';
import { ClockSkew } from '../../shared/skew.ts';
import { connectionsTable } from '../../shared/tables/connections.ts';
import { leasesTable } from '../../shared/tables/leases.ts';
import { messagesTable } from '../../shared/tables/messages.ts';
import { workersTable } from '../../shared/tables/workers.ts';
import type { Context } from '../../worker/context.ts';
import { newWorkerId, Presence } from '../../worker/presence.ts';
import { createSink } from '../../worker/sink.ts';
import type { SocketPlan } from '../../worker/socket.ts';
import { Tombstones } from '../../worker/tombstones.ts';
import { runWorker } from '../../worker/worker.ts';
import type { TestAws } from './aws.ts';
import { configOf, countedMetrics, keptLog } from './worker-parts.ts';

/** The store's clock is ours, so that the start needn't find that out. */
function agreeing(): ClockSkew {
  const skew = new ClockSkew(clock);
  const atMs = clock.now();
  for (const behindMs of [100, 900]) skew.add({ sentAtMs: atMs, answeredAtMs: atMs, dateMs: atMs - behindMs });
  return skew;
}

type Given = {
  env?: Record<string, string>;
  /** Parts to have instead, e.g. a table that fails. */
  instead?: (parts: Context) => Partial<Context>;
  /** Told of each dial. */
  onDial?: (plan: SocketPlan) => void;
};

export function startWorker(aws: TestAws, { env = {}, instead = () => ({}), onDial = () => undefined }: Given) {
  const config = configOf({
    CONNECTIONS_TABLE: aws.tables.connections,
    WORKERS_TABLE: aws.tables.workers,
    MESSAGES_TABLE: aws.tables.messages,
    QUEUE_URL: aws.queueUrl,
    SHARDS: '4',
    LONG_POLL: '1',
    STOP_CHECK_EVERY: '0.3',
    ...env,
  });
  const log = keptLog();
  const metrics = countedMetrics();
  const random = () => 0;
  const over = new AbortController();
  const workers = workersTable(aws.dynamodb, config.tables.workers);
  const messages = messagesTable(aws.dynamodb, config.tables.messages, config.sink);
  const parts: Context = {
    presence: new Presence({ config, clock, log, metrics, workers, newId: newWorkerId }),
    tombstones: new Tombstones(workers),
    skew: agreeing(),
    config,
    clock,
    random,
    log,
    metrics,
    queue: sqsQueue(aws.sqs, { ...config, clock }),
    connections: connectionsTable(aws.dynamodb, config.tables.connections, config),
    leases: leasesTable(aws.dynamodb, config.tables.connections, config),
    messages,
    workers,
    sink: createSink({ messages, clock, random, log, metrics, ...config.sink, signal: over.signal }),
    openSocket(plan) {
      onDial(plan);
      return {
        resume: () => undefined,
        stopReading: () => undefined,
        close: () => Promise.resolve(),
        terminate: () => undefined,
      };
    },
  };
  const context = { ...parts, ...instead(parts) };
  const stop = new AbortController();
  const ended = runWorker(context, stop.signal, () => undefined);
  return {
    context,
    log,
    metrics,
    async stop() {
      stop.abort();
      const ending = await ended;
      over.abort();
      return ending;
    },
  };
}
