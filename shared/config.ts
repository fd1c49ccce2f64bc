import { z } from 'zod';
import { ConfigError } from './errors.ts';
import { logLevels } from './log.ts';

const seconds = (fallback: number) => z.coerce.number().positive().default(fallback);
const count = (fallback: number) => z.coerce.number().int().positive().default(fallback);
const list = z
  .string()
  .default('')
  .transform((text) =>
    text
      .split(',')
      .map((entry) => entry.trim())
      .filter((entry) => entry !== ''),
  );

/** Names and defaults are the same everywhere: Lambda, Fargate, local. Durations are in seconds unless the name says otherwise. */
const environment = z.object({
  CONNECTIONS_TABLE: z.string().min(1),
  WORKERS_TABLE: z.string().min(1),
  MESSAGES_TABLE: z.string().min(1),
  QUEUE_URL: z.string().min(1),
  SERVICE_NAME: z.string().min(1).default('holdfast'),
  REVISION: z.string().default('unknown'),
  LOG_LEVEL: z.enum(logLevels).default('info'),
  METRICS: z.enum(['cloudwatch', 'log']).default('cloudwatch'),
  METRICS_EVERY: seconds(30),
  /** Whether the worker says to X-Ray what became of a wake-up that carries a trace. */
  TRACING: z.stringbool().default(false),
  /** How many keys of the index `by_desired_state` share the load. Raise it at any time; never lower it. */
  SHARDS: count(16),
  /** on: a short lease for each worker, a long one for each connection. off: a short one for each connection. */
  WORKER_LEASE: z.enum(['on', 'off']).default('on'),
  /** The short lease. */
  LEASE_SECONDS: seconds(20),
  HEARTBEAT_EVERY: seconds(5),
  /** Unset: an hour with the worker lease, LEASE_SECONDS without it. */
  CONNECTION_LEASE_SECONDS: z.coerce.number().positive().optional(),
  /** How far the clocks of two machines may be apart. The holder of a lease gives it up this much early. */
  CLOCK_SKEW: z.coerce.number().nonnegative().default(1),
  /** One request to DynamoDB or SQS, not counting SQS's long poll. Unset: follows from the heartbeat, 3 at most. */
  REQUEST_TIMEOUT: z.coerce.number().positive().optional(),
  /** How long one poll of the queue waits. SQS takes whole seconds, 20 at most. */
  LONG_POLL: z.coerce.number().int().min(1).max(20).default(10),
  RECONCILE_EVERY: seconds(60),
  SWEEP_EVERY: seconds(5),
  /** One query for all that a worker owns, so it may be often; nothing else notices that an item was deleted. */
  STOP_CHECK_EVERY: seconds(5),
  MAX_CONNECTIONS: count(700),
  STOP_TIMEOUT: seconds(120),
  CONNECT_TIMEOUT: seconds(10),
  CLOSE_TIMEOUT: seconds(2),
  PING_EVERY: seconds(15),
  PONG_TIMEOUT: seconds(10),
  /** A socket resets its backoff only after it stayed open this long. */
  STABLE_AFTER: seconds(10),
  /** How long a socket may stay paused, deaf to its source's pings, before it is closed on purpose. */
  PAUSE_LIMIT: seconds(20),
  REDIAL_BASE: seconds(0.5),
  REDIAL_CAP: seconds(30),
  /** After this many failures in a row, another worker shall try. */
  REDIALS_PER_WORKER: count(10),
  DIALS_AT_ONCE: count(20),
  CLAIMS_AT_ONCE: count(50),
  MAX_FRAME_BYTES: count(16 * 1024 * 1024),
  SINK_BUFFER_BYTES: count(64 * 1024 * 1024),
  STOPPED_TTL_DAYS: count(7),
  MESSAGES_TTL_DAYS: count(30),
  /** Hosts that may be dialled although their address is private, e.g. `localhost,10.0.3.7`. Empty when deployed. */
  ALLOWED_HOSTS: list,
  /** Touched while the process is alive; the container's health check reads its age. Unset: no file. */
  HEALTH_FILE: z.string().optional(),
  /** Where the workers' tasks run, for the reconciler to ask about them. Unset: there is no ECS to ask. */
  ECS_CLUSTER: z.string().optional(),
  TASK_ARN: z.string().optional(),
  ECS_CONTAINER_METADATA_URI_V4: z.string().optional(),
});

/** All that is understood, for whoever passes a configuration on. */
export const configNames = environment.keyof().options;

export type Config = ReturnType<typeof readConfig>;

/**
 * @throws ConfigError with one line for each setting that is missing, wrong, or wrong beside another
 */
export function readConfig(source: NodeJS.ProcessEnv = process.env) {
  const present = Object.fromEntries(Object.entries(source).filter(([, value]) => value !== ''));
  const parsed = environment.safeParse(present);
  if (!parsed.success) {
    const lines = parsed.error.issues.map(({ path, message }) => {
      const name = path.join('.');
      return `${name}: ${name in present ? message : 'is missing'}`;
    });
    throw new ConfigError(lines.join('\n'));
  }
  const env = {
    ...parsed.data,
    REQUEST_TIMEOUT: parsed.data.REQUEST_TIMEOUT ?? Math.min(3, parsed.data.HEARTBEAT_EVERY * 0.6),
    CONNECTION_LEASE_SECONDS:
      parsed.data.CONNECTION_LEASE_SECONDS ?? (parsed.data.WORKER_LEASE === 'on' ? 3600 : parsed.data.LEASE_SECONDS),
  };
  const wrong = wrongRelations(env);
  if (wrong.length > 0) throw new ConfigError(wrong.join('\n'));
  const ms = (value: number) => Math.round(value * 1000);
  return {
    tables: { connections: env.CONNECTIONS_TABLE, workers: env.WORKERS_TABLE, messages: env.MESSAGES_TABLE },
    queueUrl: env.QUEUE_URL,
    longPollSeconds: env.LONG_POLL,
    serviceName: env.SERVICE_NAME,
    revision: env.REVISION,
    logLevel: env.LOG_LEVEL,
    metrics: { to: env.METRICS, everyMs: ms(env.METRICS_EVERY) },
    tracing: env.TRACING,
    shards: env.SHARDS,
    workerLease: env.WORKER_LEASE === 'on',
    lease: { forMs: ms(env.LEASE_SECONDS), heartbeatMs: ms(env.HEARTBEAT_EVERY), skewMs: ms(env.CLOCK_SKEW) },
    connectionLease: {
      forMs: ms(env.CONNECTION_LEASE_SECONDS),
      heartbeatMs: env.WORKER_LEASE === 'on' ? ms(env.CONNECTION_LEASE_SECONDS / 3) : ms(env.HEARTBEAT_EVERY),
      skewMs: ms(env.CLOCK_SKEW),
    },
    requestTimeoutMs: ms(env.REQUEST_TIMEOUT),
    reconcile: { everyMs: ms(env.RECONCILE_EVERY), sweepMs: ms(env.SWEEP_EVERY) },
    stopCheckMs: ms(env.STOP_CHECK_EVERY),
    maxConnections: env.MAX_CONNECTIONS,
    claimsAtOnce: env.CLAIMS_AT_ONCE,
    stopTimeoutMs: ms(env.STOP_TIMEOUT),
    socket: {
      connectMs: ms(env.CONNECT_TIMEOUT),
      closeMs: ms(env.CLOSE_TIMEOUT),
      pingMs: ms(env.PING_EVERY),
      pongMs: ms(env.PONG_TIMEOUT),
      stableMs: ms(env.STABLE_AFTER),
      pauseLimitMs: ms(env.PAUSE_LIMIT),
      backoff: { baseMs: ms(env.REDIAL_BASE), capMs: ms(env.REDIAL_CAP) },
      failuresHere: env.REDIALS_PER_WORKER,
      dialsAtOnce: env.DIALS_AT_ONCE,
      maxFrameBytes: env.MAX_FRAME_BYTES,
    },
    sink: { bufferBytes: env.SINK_BUFFER_BYTES, ttlMs: env.MESSAGES_TTL_DAYS * dayMs },
    stoppedTtlMs: env.STOPPED_TTL_DAYS * dayMs,
    allowedHosts: env.ALLOWED_HOSTS,
    healthFile: env.HEALTH_FILE,
    cluster: env.ECS_CLUSTER,
    taskArn: env.TASK_ARN,
    taskMetadataUrl: env.ECS_CONTAINER_METADATA_URI_V4,
  };
}

/** Of the request that Lambda is running now. It isn't part of the configuration: each request has its own. */
export const traceHeader = (): string | undefined => process.env['_X_AMZN_TRACE_ID'];

type Settled = z.infer<typeof environment> & { REQUEST_TIMEOUT: number; CONNECTION_LEASE_SECONDS: number };

const dayMs = 86_400_000;

/** Timings are checked against each other here, once, and not found out in production. */
function wrongRelations(env: Settled): string[] {
  const rules: [boolean, string][] = [
    [
      env.HEARTBEAT_EVERY < env.LEASE_SECONDS / 3,
      `HEARTBEAT_EVERY (${env.HEARTBEAT_EVERY}) must be under a third of LEASE_SECONDS (${env.LEASE_SECONDS}), so that two lost renewals don't cost the lease`,
    ],
    [
      env.REQUEST_TIMEOUT < env.HEARTBEAT_EVERY,
      `REQUEST_TIMEOUT (${env.REQUEST_TIMEOUT}) must be under HEARTBEAT_EVERY (${env.HEARTBEAT_EVERY}), so that a renewal is answered or given up before the next`,
    ],
    [
      env.CLOCK_SKEW + env.HEARTBEAT_EVERY + env.REQUEST_TIMEOUT < env.LEASE_SECONDS,
      `CLOCK_SKEW (${env.CLOCK_SKEW}) leaves no time to renew within LEASE_SECONDS (${env.LEASE_SECONDS})`,
    ],
    [
      env.WORKER_LEASE === 'on'
        ? env.CONNECTION_LEASE_SECONDS > env.LEASE_SECONDS
        : env.HEARTBEAT_EVERY < env.CONNECTION_LEASE_SECONDS / 3 &&
          env.CLOCK_SKEW + env.HEARTBEAT_EVERY + env.REQUEST_TIMEOUT < env.CONNECTION_LEASE_SECONDS,
      `CONNECTION_LEASE_SECONDS (${env.CONNECTION_LEASE_SECONDS}) must be over LEASE_SECONDS with the worker lease, and over three heartbeats without it`,
    ],
    [
      env.CONNECTION_LEASE_SECONDS <= 43_200,
      `CONNECTION_LEASE_SECONDS (${env.CONNECTION_LEASE_SECONDS}) must not be over 43200: a dead worker is remembered for a day`,
    ],
    [
      env.RECONCILE_EVERY <= 60,
      `RECONCILE_EVERY (${env.RECONCILE_EVERY}) must not be over 60: the schedule calls the reconciler every minute`,
    ],
    [
      env.SWEEP_EVERY <= env.RECONCILE_EVERY,
      `SWEEP_EVERY (${env.SWEEP_EVERY}) must not be over RECONCILE_EVERY (${env.RECONCILE_EVERY})`,
    ],
    [
      env.CLOSE_TIMEOUT + env.REQUEST_TIMEOUT < env.STOP_TIMEOUT,
      `STOP_TIMEOUT (${env.STOP_TIMEOUT}) must be over CLOSE_TIMEOUT + REQUEST_TIMEOUT, or a shutdown can't end in time`,
    ],
    [
      env.LONG_POLL < env.STOP_TIMEOUT,
      `LONG_POLL (${env.LONG_POLL}) must be under STOP_TIMEOUT (${env.STOP_TIMEOUT}): a shutdown waits for the last poll`,
    ],
    [
      env.REDIAL_BASE <= env.REDIAL_CAP,
      `REDIAL_BASE (${env.REDIAL_BASE}) must not be over REDIAL_CAP (${env.REDIAL_CAP})`,
    ],
  ];
  return rules.filter(([holds]) => !holds).map(([, sentence]) => sentence);
}
