/** A worker's parts in the test's own process, over the embedded AWS: real tables, queue and sink; sockets that only pretend. */
import { systemClock } from '../../shared/clock.ts';
import { sqsQueue } from '../../shared/queue.ts';
import { ClockSkew } from '../../shared/skew.ts';
import { connectionsTable } from '../../shared/tables/connections.ts';
import { leasesTable } from '../../shared/tables/leases.ts';
import { messagesTable } from '../../shared/tables/messages.ts';
import { workersTable } from '../../shared/tables/workers.ts';
import type { Context } from '../../worker/context.ts';
import { createSink } from '../../worker/sink.ts';
import type { OpenSocket, SocketPlan } from '../../worker/socket.ts';
import { Tombstones } from '../../worker/tombstones.ts';
import type { TestAws } from './aws.ts';
import { configOf, countedMetrics, keptLog, livingPresence } from './worker-parts.ts';

/** What a holding asked for, and what became of it. */
export type PretendedSocket = {
  plan: SocketPlan;
  url: string;
  state: 'open' | 'closed' | 'terminated';
  reading: boolean;
  resumed: number;
};

export function pretendedSockets() {
  const sockets: PretendedSocket[] = [];
  const openSocket: OpenSocket = (plan) => {
    const socket: PretendedSocket = { plan, url: plan.url(), state: 'open', reading: true, resumed: 0 };
    sockets.push(socket);
    const end = (state: 'closed' | 'terminated') => {
      socket.reading = false;
      if (socket.state === 'open') socket.state = state;
    };
    return {
      resume: () => {
        socket.resumed++;
      },
      stopReading: () => {
        socket.reading = false;
      },
      close: () => {
        end('closed');
        return Promise.resolve();
      },
      terminate: () => end('terminated'),
    };
  };
  return { sockets, openSocket };
}

let workers = 0;

type Given = { env?: Record<string, string> } & Partial<Omit<Context, 'config' | 'sink' | 'openSocket'>>;

export function workerOn(aws: TestAws, { env = {}, ...given }: Given = {}) {
  const config = configOf({
    CONNECTIONS_TABLE: aws.tables.connections,
    WORKERS_TABLE: aws.tables.workers,
    MESSAGES_TABLE: aws.tables.messages,
    QUEUE_URL: aws.queueUrl,
    SHARDS: '4',
    ...env,
  });
  const clock = given.clock ?? systemClock;
  const random = () => 0;
  const log = keptLog();
  const metrics = countedMetrics();
  const over = new AbortController();
  const messages = given.messages ?? messagesTable(aws.dynamodb, config.tables.messages, config.sink);
  const pretended = pretendedSockets();
  const table = workersTable(aws.dynamodb, config.tables.workers);
  const context: Context = {
    presence: livingPresence(`w-${++workers}`).presence,
    tombstones: new Tombstones(table),
    skew: new ClockSkew(clock),
    config,
    clock,
    random,
    queue: sqsQueue(aws.sqs, { ...config, clock }),
    connections: connectionsTable(aws.dynamodb, config.tables.connections, config),
    leases: leasesTable(aws.dynamodb, config.tables.connections, config),
    workers: table,
    sink: createSink({ messages, clock, random, log, metrics, ...config.sink, signal: over.signal }),
    openSocket: pretended.openSocket,
    ...given,
    messages,
    log,
    metrics,
  };
  return { context, log, metrics, sockets: pretended.sockets, stop: () => over.abort() };
}
