import { awsClients } from '../shared/aws.ts';
import type { Config } from '../shared/config.ts';
import type { Log } from '../shared/log.ts';
import { createMetrics, type Metrics, toCloudWatch, toLog } from '../shared/metrics.ts';

/**
 * What every function needs of AWS, built once per container. A frozen container's connections are often dead when it
 * is thawed, so a request is tried twice. Nothing here owns anything: a write that comes twice is refused or changes nothing.
 */
export function clientsFor(config: Config) {
  return awsClients({ requestTimeoutMs: config.requestTimeoutMs, maxSockets: 50, maxAttempts: 2 });
}

export function metricsFor(config: Config, clients: ReturnType<typeof clientsFor>, log: Log): Metrics {
  const { to } = config.metrics;
  return createMetrics(to === 'log' ? toLog(log) : toCloudWatch(clients.cloudwatch, config.serviceName), log, {
    gauges: 'once',
  });
}
