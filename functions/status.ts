import { systemClock as clock } from '../shared/clock.ts';
import { sqsQueue } from '../shared/queue.ts';
import { connectionsTable } from '../shared/tables/connections.ts';
import { workersTable } from '../shared/tables/workers.ts';
import { showConnection } from './connection.ts';
import { clientsFor } from './container.ts';
import { showFleet } from './fleet.ts';
import { httpHandler } from './http.ts';
import { listConnections } from './list.ts';

export const handler = httpHandler('status', (config) => {
  const aws = clientsFor(config);
  const connections = connectionsTable(aws.dynamodb, config.tables.connections, config);
  const workers = workersTable(aws.dynamodb, config.tables.workers);
  const { shards } = config;
  return {
    'GET /connections/{id}': showConnection({ connections, workers, clock }),
    'GET /connections': listConnections({ connections, shards, clock }),
    'GET /fleet': showFleet({
      connections,
      workers,
      queue: sqsQueue(aws.sqs, { ...config, clock }),
      shards,
      clock,
      leaseMs: config.lease.forMs,
    }),
  };
});
