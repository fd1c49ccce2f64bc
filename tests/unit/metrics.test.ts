import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CloudWatchClient } from '@aws-sdk/client-cloudwatch';
import { describe, expect, test } from '@jest/globals';
import { createMetrics, type Datum, isMetricName, toCloudWatch, toLog } from '../../shared/metrics.ts';
import { keptLog } from '../support/worker-parts.ts';

describe('metrics', () => {
  test('what couldn’t be published goes with the next, added to what came since', async () => {
    const published: Datum[][] = [];
    let away = true;
    const metrics = createMetrics(async (data) => {
      if (away) throw new Error('away');
      published.push(data);
    }, keptLog());
    metrics.count('ClaimsWon', 2);
    metrics.observe('GapSeconds', 1);
    await metrics.publish();
    away = false;
    metrics.count('ClaimsWon');
    metrics.observe('GapSeconds', 1);
    await metrics.publish();
    expect(published).toEqual([
      [
        { name: 'ClaimsWon', value: 3 },
        { name: 'GapSeconds', spread: { values: [expect.closeTo(1, 1)], counts: [2] } },
      ],
    ]);
    await metrics.publish();
    expect(published).toHaveLength(1);
  });

  test('a distribution goes to CloudWatch as values with counts, of which it can draw percentiles', async () => {
    const sent: unknown[] = [];
    const client = new CloudWatchClient({ region: 'us-east-1' });
    const answer = (request: { input: object }) => {
      sent.push(request.input);
      return Promise.resolve({ output: { $metadata: {} }, response: {} });
    };
    client.middlewareStack.add(() => answer, { step: 'initialize', priority: 'high' });
    await toCloudWatch(
      client,
      'holdfast-test',
    )([
      { name: 'Orphans', value: 3 },
      { name: 'StoreLagMs', spread: { values: [10, 20], counts: [5, 1] } },
    ]);
    const Dimensions = [{ Name: 'Service', Value: 'holdfast-test' }];
    const MetricData = [
      { MetricName: 'Orphans', Value: 3, Unit: 'Count', Dimensions },
      { MetricName: 'StoreLagMs', Values: [10, 20], Counts: [5, 1], Unit: 'Milliseconds', Dimensions },
    ];
    expect(sent).toEqual([{ Namespace: 'holdfast', MetricData }]);
  });

  test('where there is no CloudWatch it is a summary in the log', async () => {
    const log = keptLog();
    await toLog(log)([{ name: 'StoreLagMs', spread: { values: [10, 20], counts: [5, 1] } }]);
    expect(log.lines).toEqual([
      { event: 'metrics.published', fields: { StoreLagMs: { count: 6, p50: 10, p99: 20, max: 20 } } },
    ]);
  });
});

describe('the dashboard', () => {
  const file = readFileSync(join(import.meta.dirname, '..', '..', 'deploy', 'dashboard.yml'), 'utf8');
  const text = file.slice(file.indexOf('DashboardBody: !Sub |') + 'DashboardBody: !Sub |'.length);
  // What is filled in is a name between quotes, or a number.
  const body = JSON.parse(text.replaceAll(/\$\{[^}]*\}/g, '1')) as {
    widgets: { properties: { metrics?: unknown[][] } }[];
  };

  test('shows only metrics that somebody publishes', () => {
    const named = body.widgets.flatMap(({ properties }) => namesIn(properties.metrics ?? []));
    expect(named).toContain('GapSeconds');
    expect(named.filter((name) => !isMetricName(name))).toEqual([]);
  });
});

/** Names in the namespace `holdfast`. A dot stands for what is in the same place a row above, three for a whole row. */
function namesIn(rows: unknown[][]): string[] {
  let namespace: unknown;
  return rows.flatMap(([first, name]) => {
    if (typeof first !== 'string' || first === '...') return [];
    if (first !== '.') namespace = first;
    return namespace === 'holdfast' && typeof name === 'string' ? [name] : [];
  });
}
