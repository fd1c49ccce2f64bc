import { type CloudWatchClient, PutMetricDataCommand, type StandardUnit } from '@aws-sdk/client-cloudwatch';
import type { Clock } from './clock.ts';
import { Distribution, type Spread, summaryOf } from './distribution.ts';
import { describe } from './errors.ts';
import type { Log } from './log.ts';

export const namespace = 'holdfast';

/** Every metric that holdfast publishes, with its unit. Alarms and scaling in serverless.yml go by these names. */
const units = {
  ActiveConnections: 'Count',
  ClaimsWon: 'Count',
  ClaimsLost: 'Count',
  ClaimsUnanswered: 'Count',
  RenewalsUnanswered: 'Count',
  LeasesLost: 'Count',
  LeasesExpired: 'Count',
  WorkersFenced: 'Count',
  Redials: 'Count',
  ConnectionsFailed: 'Count',
  ConnectionsHandedOver: 'Count',
  /** How long a connection had nobody, from the last sign of its owner to the next one's open socket. */
  GapSeconds: 'Seconds',
  ClockSkewMs: 'Milliseconds',
  MessagesStored: 'Count',
  /** From the frame to its item in the table. */
  StoreLagMs: 'Milliseconds',
  MessagesRepeated: 'Count',
  MessagesUnnumbered: 'Count',
  MessagesDiscarded: 'Count',
  SinkRetries: 'Count',
  SocketsPaused: 'Count',
  TracesDropped: 'Count',
  QueueFaults: 'Count',
  StoreFaults: 'Count',
  BadWakeUps: 'Count',
  Sweeps: 'Count',
  WorkersExpired: 'Count',
  Orphans: 'Count',
  OldestOrphanAgeSeconds: 'Seconds',
  WakeUpsSent: 'Count',
  ReconcileErrors: 'Count',
} as const satisfies Record<string, StandardUnit>;

export type MetricName = keyof typeof units;

export const isMetricName = (name: string): name is MetricName => name in units;

export type Metrics = {
  /** Adds to a counter; what has been added since the last publication is published as one value. */
  count(name: MetricName, by?: number): void;
  /** Sets what is published until it is set again. */
  gauge(name: MetricName, value: number): void;
  /** One of many values whose percentiles matter. What was observed since the last publication is published together. */
  observe(name: MetricName, value: number): void;
  /** Never throws: what couldn't be published is kept and goes with the next one. */
  publish(): Promise<void>;
};

export type Datum = { name: MetricName } & ({ value: number; spread?: never } | { value?: never; spread: Spread });

export type MetricsTarget = (data: Datum[]) => Promise<void>;

/** @param service the one dimension, so that several fleets in one account don't mix */
export function toCloudWatch(client: CloudWatchClient, service: string): MetricsTarget {
  return async (data) => {
    await client.send(
      new PutMetricDataCommand({
        Namespace: namespace,
        MetricData: data.map((datum) => ({
          MetricName: datum.name,
          ...(datum.spread ? { Values: datum.spread.values, Counts: datum.spread.counts } : { Value: datum.value }),
          Unit: units[datum.name],
          Dimensions: [{ Name: 'Service', Value: service }],
        })),
      }),
    );
  };
}

/** For a machine without CloudWatch: the same figures as one log line. */
export function toLog(log: Log): MetricsTarget {
  const shown = (datum: Datum) => (datum.spread ? summaryOf(datum.spread) : datum.value);
  return async (data) =>
    log.info('metrics.published', Object.fromEntries(data.map((datum) => [datum.name, shown(datum)])));
}

/** @param gauges kept: published again until they are set again; once: a function that is called now and then has none in between */
export function createMetrics(
  target: MetricsTarget,
  log: Log,
  keep: { gauges: 'kept' | 'once' } = { gauges: 'kept' },
): Metrics {
  const counters = new Map<MetricName, number>();
  const gauges = new Map<MetricName, number>();
  const distributions = new Map<MetricName, Distribution>();
  const add = (name: MetricName, by: number) => counters.set(name, (counters.get(name) ?? 0) + by);
  const distribution = (name: MetricName) => {
    const known = distributions.get(name) ?? new Distribution();
    distributions.set(name, known);
    return known;
  };
  return {
    count: (name, by = 1) => void add(name, by),
    gauge: (name, value) => void gauges.set(name, value),
    observe: (name, value) => distribution(name).add(value),
    async publish() {
      const counted = [...counters];
      const observed = [...distributions].map(([name, values]) => ({ name, spread: values.spread() }));
      const data = [...[...counted, ...gauges].map(([name, value]) => ({ name, value })), ...observed];
      if (data.length === 0) return;
      counters.clear();
      distributions.clear();
      if (keep.gauges === 'once') gauges.clear();
      try {
        await target(data);
      } catch (fault) {
        for (const [name, value] of counted) add(name, value);
        for (const { name, spread } of observed) distribution(name).addAll(spread);
        log.warn('metrics.unpublished', { fault: describe(fault) });
      }
    },
  };
}

/** Publishes until the signal aborts, and once more at the end. */
export async function publishEvery(
  metrics: Metrics,
  everyMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(everyMs, signal);
    await metrics.publish();
  }
}
