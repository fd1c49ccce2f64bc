/**
 * What a stack costs a month that holds no connection: what runs, and what it asks for only to be ready. From the template, so a
 * parameter shows at once. Not in it: data transfer, Container Insights, what is stored, and a NAT gateway of somebody else's.
 */
import { z } from 'zod';
import type { Prices } from './prices.ts';

const resource = z.object({ Type: z.string(), Properties: z.record(z.string(), z.unknown()).default({}) });
const templateSchema = z.object({
  Parameters: z.record(z.string(), z.looseObject({ Default: z.unknown() })).default({}),
  Resources: z.record(z.string(), resource),
});

export type CostLine = { what: string; how: string; dollars: number };

const HOURS = 730;
const SECONDS = HOURS * 3600;
const MILLION = 1_000_000;
/** Compressed, as ECR stores it: Node's slim image and a few packages. */
const imageGigabytes = 0.09;
/** Lambda's own three lines and the function's one. */
const logBytesPerInvocation = 900;
/** What is published when nothing happens: two gauges of workers, five figures of the reconciler (shared/metrics.ts). */
const idleMetrics = 7;
/** A target-tracking policy makes one alarm for each direction; for tables, two. */
const alarmsOfPolicy = (type: unknown): number => (String(type).startsWith('DynamoDB') ? 4 : 2);

export function idleCosts(template: unknown, price: Prices): CostLine[] {
  const { Resources, Parameters } = templateSchema.parse(template);
  const properties = (id: string) => Resources[id]?.Properties ?? {};
  const ofType = (type: string) => Object.values(Resources).filter((one) => one.Type === type);

  const workers = numberOf(properties('WorkerScaling')['MinCapacity']);
  const task = properties('WorkerTask');
  const [vcpu, gigabytes] = [numberOf(task['Cpu']) / 1024, numberOf(task['Memory']) / 1024];
  const worker = workerSettings(task);
  const reconcile = reconcileSettings(properties('ReconcileLambdaFunction'));
  const awakeSeconds = reconcile.everySeconds - reconcile.sweepSeconds + 0.3;
  const perMonth = (everySeconds: number) => SECONDS / everySeconds;
  const invocations = perMonth(60);
  const sweeps = invocations * Math.ceil(reconcile.everySeconds / reconcile.sweepSeconds);
  const hasOwnIp = JSON.stringify(properties('WorkerService')['NetworkConfiguration']).includes('"ENABLED"');

  const alarms = ofType('AWS::CloudWatch::Alarm').length;
  const policies = ofType('AWS::ApplicationAutoScaling::ScalingPolicy').map((one) =>
    alarmsOfPolicy(predefined(one.Properties)),
  );
  const allAlarms = alarms + policies.reduce((sum, count) => sum + count, 0);
  const puts = workers * perMonth(worker.metricsSeconds) + sweeps;
  const polls = workers * perMonth(worker.longPollSeconds);
  // A table's key is asked for again once in five minutes, by each caller.
  const keyRequests = 3 * (workers + 3) * perMonth(300);

  return [
    line(
      'Fargate',
      `${workers} × ${vcpu} vCPU, ${gigabytes} GB`,
      workers * HOURS * (vcpu * price.fargateArmVcpuHour + gigabytes * price.fargateArmGigabyteHour),
    ),
    line('public addresses', `${hasOwnIp ? workers : 0}`, hasOwnIp ? workers * HOURS * price.publicIpv4Hour : 0),
    line(
      'Lambda: reconcile',
      `${round(invocations)} × ${awakeSeconds} s, ${reconcile.megabytes} MB`,
      ((invocations * awakeSeconds * reconcile.megabytes) / 1024) * price.lambdaArmGigabyteSecond +
        (invocations / MILLION) * price.lambdaMillionRequests,
    ),
    ...tableCosts(
      {
        provisioned: Parameters['TableBilling']?.Default === 'provisioned',
        tables: ofType('AWS::DynamoDB::Table').map((one) => one.Properties),
      },
      {
        writes: workers * perMonth(worker.heartbeatSeconds),
        // An eventually consistent read of little is half a unit; the scan of workers is consistent.
        reads: 0.5 * workers * perMonth(worker.stopCheckSeconds) + sweeps + 0.5 * worker.shards * invocations,
      },
      price,
    ),
    line('SQS', `${round(polls)} polls`, (polls / MILLION) * price.sqsMillionRequests),
    line('CloudWatch: alarms', `${allAlarms}`, allAlarms * price.cloudwatchAlarmMonth),
    line(
      'CloudWatch: metrics',
      `${idleMetrics}, published ${round(puts)} times`,
      idleMetrics * price.cloudwatchMetricMonth + (puts / 1000) * price.cloudwatchThousandPuts,
    ),
    line(
      'CloudWatch: logs',
      `${round((invocations * logBytesPerInvocation) / MILLION)} MB`,
      ((invocations * logBytesPerInvocation) / 1e9) * price.logsGigabyte,
    ),
    line('KMS', `${round(keyRequests)} requests at most`, (keyRequests / 10_000) * price.kmsTenThousandRequests),
    line('ECR', '10 images at most', 10 * imageGigabytes * price.ecrGigabyteMonth),
  ];
}

type Tables = { provisioned: boolean; tables: Record<string, unknown>[] };

function tableCosts(
  { provisioned, tables }: Tables,
  idle: { writes: number; reads: number },
  price: Prices,
): CostLine[] {
  if (!provisioned) {
    const dollars =
      (idle.writes * price.dynamodbMillionWriteUnits + idle.reads * price.dynamodbMillionReadUnits) / MILLION;
    return [line('DynamoDB', `${round(idle.writes)} writes, ${round(idle.reads)} reads`, dollars)];
  }
  const parts = tables.reduce(
    (sum, one) => sum + 1 + z.array(z.unknown()).default([]).parse(one['GlobalSecondaryIndexes']).length,
    0,
  );
  const least = numberOf(
    z
      .object({ 'Fn::If': z.tuple([z.string(), z.object({ ReadCapacityUnits: z.unknown() }), z.unknown()]) })
      .parse(tables[0]?.['ProvisionedThroughput'])['Fn::If'][1].ReadCapacityUnits,
  );
  const hourly = parts * least * (price.dynamodbReadCapacityHour + price.dynamodbWriteCapacityHour);
  return [line('DynamoDB', `${parts} tables and indexes × ${least} units, of reads and of writes`, hourly * HOURS)];
}

const environmentEntry = z.object({ Name: z.string(), Value: z.unknown() });
const containers = z.array(z.object({ Environment: z.array(environmentEntry) })).min(1);

function workerSettings(task: Record<string, unknown>) {
  const [container] = containers.parse(task['ContainerDefinitions']);
  const of = (name: string) => container?.Environment.find((entry) => entry.Name === name)?.Value;
  return {
    heartbeatSeconds: numberOf(of('HEARTBEAT_EVERY')),
    stopCheckSeconds: numberOf(of('STOP_CHECK_EVERY')),
    metricsSeconds: numberOf(of('METRICS_EVERY')),
    longPollSeconds: numberOf(of('LONG_POLL')),
    shards: numberOf(of('SHARDS')),
  };
}

function reconcileSettings(properties: Record<string, unknown>) {
  const { Variables } = z.object({ Variables: z.record(z.string(), z.unknown()) }).parse(properties['Environment']);
  return {
    megabytes: numberOf(properties['MemorySize']),
    everySeconds: numberOf(Variables['RECONCILE_EVERY']),
    sweepSeconds: numberOf(Variables['SWEEP_EVERY']),
  };
}

function predefined(policy: Record<string, unknown>): unknown {
  const tracking = z.looseObject({
    PredefinedMetricSpecification: z.object({ PredefinedMetricType: z.string() }).optional(),
  });
  return tracking.parse(policy['TargetTrackingScalingPolicyConfiguration']).PredefinedMetricSpecification
    ?.PredefinedMetricType;
}

const line = (what: string, how: string, dollars: number): CostLine => ({ what, how, dollars });
const round = (value: number): string => Math.round(value).toLocaleString('en-US');

function numberOf(value: unknown): number {
  return z.coerce.number().parse(value);
}
