import { systemClock } from '../shared/clock.ts';
import { traceHeader } from '../shared/config.ts';
import { sqsQueue } from '../shared/queue.ts';
import { connectionsTable } from '../shared/tables/connections.ts';
import { clientsFor, metricsFor } from './container.ts';
import { changeDesiredState } from './desired-state.ts';
import { httpHandler } from './http.ts';

export const handler = httpHandler('events', (config, log) => {
  const aws = clientsFor(config);
  return {
    'POST /events': changeDesiredState({
      connections: connectionsTable(aws.dynamodb, config.tables.connections, config),
      queue: sqsQueue(aws.sqs, { ...config, clock: systemClock, traceHeader }),
      clock: systemClock,
      metrics: metricsFor(config, aws, log),
      random: Math.random,
      allowedHosts: config.allowedHosts,
      wakeUpWithinMs: config.requestTimeoutMs,
    }),
  };
});
