import { ECSClient } from '@aws-sdk/client-ecs';
import type { Context } from 'aws-lambda';
import { z } from 'zod';
import { clientOptions } from '../shared/aws.ts';
import { systemClock as clock } from '../shared/clock.ts';
import { type Config, readConfig, traceHeader } from '../shared/config.ts';
import { ConfigError, describe, InputError } from '../shared/errors.ts';
import { createLog } from '../shared/log.ts';
import { sqsQueue } from '../shared/queue.ts';
import { connectionsTable } from '../shared/tables/connections.ts';
import { leasesTable } from '../shared/tables/leases.ts';
import { workersTable } from '../shared/tables/workers.ts';
import { type ByHandParts, reconcileByHand } from './by-hand.ts';
import { clientsFor, metricsFor } from './container.ts';
import { taskStatus } from './ecs.ts';
import { MassGuard } from './mass-guard.ts';
import { sweepThrough } from './sweep.ts';
import { type TaskStoppedParts, taskStateChange, taskStopped } from './task-stopped.ts';

/** What a sweep takes at most, while requests to DynamoDB and SQS hang: none begins with less time than that. */
const marginMs = 10_000;

const scheduled = z.object({ source: z.literal('aws.events') });

let log = createLog('info', { service: 'holdfast', function: 'reconcile' });
let built: { config: Config; parts: Parts } | undefined;

type Parts = ByHandParts & TaskStoppedParts;

/**
 * The safety net: finds workers that died, and connections that are wanted and that nobody owns. ECS tells it of a task that
 * ended; by schedule it sweeps until the next call is
 * due; by hand (`{"dryRun": true}`, `{"connectionId": "…"}`, `{"workerId": "…"}`, or nothing) it looks once and answers.
 */
export async function handler(event: unknown, context: Context): Promise<unknown> {
  try {
    built ??= build();
    const { config, parts } = built;
    const change = taskStateChange.safeParse(event);
    if (change.success) return await taskStopped(parts, change.data);
    if (!scheduled.safeParse(event).success) return await reconcileByHand(parts, event);
    const remainingMs = () => context.getRemainingTimeInMillis();
    const done = await sweepThrough(parts, { ...config.reconcile, marginMs, remainingMs });
    log.info('reconcile.done', { request_id: context.awsRequestId, ...done });
    return done;
  } catch (fault) {
    const request_id = context.awsRequestId;
    if (fault instanceof ConfigError) log.error('config.invalid', { request_id, problems: fault.message.split('\n') });
    else if (fault instanceof InputError) log.warn('reconcile.refused', { request_id, message: fault.message });
    else log.error('reconcile.failed', { request_id, fault: describe(fault) });
    throw fault;
  }
}

function build(): { config: Config; parts: Parts } {
  const config = readConfig();
  log = createLog(config.logLevel, { service: config.serviceName, function: 'reconcile' });
  const aws = clientsFor(config);
  const parts = {
    connections: connectionsTable(aws.dynamodb, config.tables.connections, config),
    leases: leasesTable(aws.dynamodb, config.tables.connections, config),
    workers: workersTable(aws.dynamodb, config.tables.workers),
    lease: config.lease,
    workerLease: config.workerLease,
    guard: new MassGuard(config.lease.forMs),
    seen: { orphans: 0, oldestAgeMs: 0 },
    statusOf:
      config.cluster === undefined
        ? undefined
        : taskStatus(
            new ECSClient(clientOptions({ requestTimeoutMs: config.requestTimeoutMs, maxSockets: 2, maxAttempts: 2 })),
            config.cluster,
          ),
    queue: sqsQueue(aws.sqs, { ...config, clock, traceHeader }),
    shards: config.shards,
    clock,
    metrics: metricsFor(config, aws, log),
    log,
    random: Math.random,
  };
  return { config, parts };
}
