/** What a worker's parts get in tests: a configuration without the environment, metrics that can be read, a log that keeps quiet. */
import { type Config, readConfig } from '../../shared/config.ts';
import type { Log } from '../../shared/log.ts';
import type { MetricName, Metrics } from '../../shared/metrics.ts';
import { ClockSkew } from '../../shared/skew.ts';
import type { Context } from '../../worker/context.ts';
import type { Presence } from '../../worker/presence.ts';
import { Tombstones } from '../../worker/tombstones.ts';
import { VirtualClock } from './virtual-clock.ts';

/** Suites run under the default setting; what imports them may have set the other one before. */
export const workerLease = process.env['WORKER_LEASE'] ?? 'on';

/** @param env the configuration's variables, beside those that have no default */
export function configOf(env: Record<string, string> = {}): Config {
  return readConfig({
    CONNECTIONS_TABLE: 'connections',
    WORKERS_TABLE: 'workers',
    MESSAGES_TABLE: 'messages',
    QUEUE_URL: 'http://127.0.0.1:9/queue',
    WORKER_LEASE: workerLease,
    ...env,
  });
}

export type Logged = { event: string; fields: Record<string, unknown> };

export function keptLog(): Log & { lines: Logged[] } {
  const lines: Logged[] = [];
  const keep = (event: string, fields: Record<string, unknown> = {}) => void lines.push({ event, fields });
  const log = { lines, debug: keep, info: keep, warn: keep, error: keep, with: () => log };
  return log;
}

export function countedMetrics(): Metrics & { of(name: MetricName): number } {
  const counts = new Map<MetricName, number>();
  return {
    of: (name) => counts.get(name) ?? 0,
    count: (name, by = 1) => void counts.set(name, (counts.get(name) ?? 0) + by),
    gauge: (name, value) => void counts.set(name, value),
    observe: (name) => void counts.set(name, (counts.get(name) ?? 0) + 1),
    publish: () => Promise.resolve(),
  };
}

/** A worker lease that runs until the test ends it. */
export function livingPresence(id: string) {
  const fence = new AbortController();
  const now = { mayClaim: true };
  const alive = () => !fence.signal.aborted;
  const parts = {
    id,
    fenced: fence.signal,
    valid: (asked: string) => asked === id && alive(),
    mayClaim: () => now.mayClaim && alive(),
  };
  /** Near its end no claim begins any more. */
  const mayClaim = (may: boolean) => {
    now.mayClaim = may;
  };
  return { presence: parts as unknown as Presence, fence: () => fence.abort('expired'), mayClaim };
}

const unexpected = (what: string) =>
  new Proxy(
    {},
    {
      get: (_target, name) => () => {
        throw new Error(`nothing here should use ${what}.${String(name)}`);
      },
    },
  );

type Given = Partial<Omit<Context, 'config'>> & { env?: Record<string, string> };

/** A worker's context; whatever isn't given fails when it is used. */
export function contextOf({ env = {}, ...given }: Given) {
  const log = keptLog();
  const metrics = countedMetrics();
  const { clock = new VirtualClock(), workers = unexpected('workers') as Context['workers'] } = given;
  const context: Context = {
    presence: livingPresence('w-me').presence,
    tombstones: new Tombstones(workers),
    skew: new ClockSkew(clock),
    config: configOf(env),
    clock,
    random: () => 0.5,
    queue: unexpected('queue') as Context['queue'],
    connections: unexpected('connections') as Context['connections'],
    leases: unexpected('leases') as Context['leases'],
    messages: unexpected('messages') as Context['messages'],
    workers,
    sink: unexpected('sink') as Context['sink'],
    openSocket: unexpected('openSocket') as unknown as Context['openSocket'],
    ...given,
    log,
    metrics,
  };
  return { context, log, metrics };
}
