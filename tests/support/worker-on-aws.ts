/** A worker's parts in the test's own process, over the embedded AWS: real tables, queue and sink; sockets that only pretend. */
import { systemClock } from '../../shared/clock.ts';
import { type Connection, pkOf, type SourceChoice } from '../../shared/connection.ts';
import { sqsQueue } from '../../shared/queue.ts';
import { connectionsTable } from '../../shared/tables/connections.ts';
import { leasesTable } from '../../shared/tables/leases.ts';
import { messagesTable } from '../../shared/tables/messages.ts';
import { workersTable } from '../../shared/tables/workers.ts';
import type { Context } from '../../worker/context.ts';
import { createSink } from '../../worker/sink.ts';
import type { OpenSocket, SocketPlan } from '../../worker/socket.ts';
import type { TestAws } from './aws.ts';
import { configOf, countedMetrics, keptLog } from './worker-parts.ts';

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
  const context: Context = {
    workerId: `w-${++workers}`,
    config,
    clock,
    random,
    queue: sqsQueue(aws.sqs, { ...config, clock }),
    connections: connectionsTable(aws.dynamodb, config.tables.connections, config),
    leases: leasesTable(aws.dynamodb, config.tables.connections, config),
    workers: workersTable(aws.dynamodb, config.tables.workers),
    sink: createSink({ messages, clock, random, log, metrics, ...config.sink, signal: over.signal }),
    openSocket: pretended.openSocket,
    ...given,
    messages,
    log,
    metrics,
  };
  return { context, log, metrics, sockets: pretended.sockets, stop: () => over.abort() };
}

type Wish = { wsUrl?: string; source?: SourceChoice };

/** What START and STOP write, and ways to look at it. */
export function wishes({ connections }: Pick<Context, 'connections'>) {
  const item = async (id: string): Promise<Connection> => {
    const found = await connections.get(pkOf(id));
    if (!found) throw new Error(`there is no item for ${id}`);
    return found;
  };
  const write = async (id: string, desiredState: 'STARTED' | 'STOPPED', wish: Wish): Promise<string> => {
    const pk = pkOf(id);
    const seen = await connections.get(pk);
    const generation = (seen?.generation ?? 0) + (desiredState === 'STARTED' ? 1 : 0);
    const { wsUrl = seen?.wsUrl ?? 'ws://source/x', source = seen?.source ?? { name: 'plain' } } = wish;
    const status = desiredState === 'STARTED' ? 'PENDING' : (seen?.status ?? 'PENDING');
    const intent = { desiredState, wsUrl, source, generation, status };
    if ((await connections.want(pk, intent, seen, Date.now())) === 'refused') throw new Error('somebody was faster');
    return pk;
  };
  return {
    item,
    start: (id: string, wish: Wish = {}) => write(id, 'STARTED', wish),
    stop: (id: string) => write(id, 'STOPPED', {}),
  };
}
