import type { LambdaClient } from '@aws-sdk/client-lambda';
import { systemClock as clock } from '../shared/clock.ts';
import type { Config } from '../shared/config.ts';
import { sqsQueue } from '../shared/queue.ts';
import { connectionsTable } from '../shared/tables/connections.ts';
import { storedMessages } from '../shared/tables/stored-messages.ts';
import { type WorkerReport, workersTable } from '../shared/tables/workers.ts';
import type { Clients } from './clients.ts';

/** A fleet to look at: that of a stage, or the one on this machine. What differs between them is found out once. */
export type Target = ReturnType<typeof targetOf>;

export type Found = {
  /** For people: `stage prod`. */
  title: string;
  clients: Clients;
  /** What the fleet itself runs with. */
  config: Config;
  reconcileFunction: string;
  /** Tells a worker's process to hand over and end. @returns what was done, in words */
  stopWorker: (worker: WorkerReport) => Promise<string>;
};

export function targetOf({ title, clients, config, reconcileFunction, stopWorker }: Found) {
  const { dynamodb, sqs } = clients;
  const lambda: Pick<LambdaClient, 'send'> = clients.lambda;
  return {
    title,
    config,
    clock,
    lambda,
    reconcileFunction,
    stopWorker,
    connections: connectionsTable(dynamodb, config.tables.connections, config),
    workers: workersTable(dynamodb, config.tables.workers),
    messages: storedMessages(dynamodb, config.tables.messages),
    queue: sqsQueue(sqs, { ...config, clock }),
    shards: config.shards,
    leaseMs: config.lease.forMs,
  };
}
