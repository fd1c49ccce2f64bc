/** The figures as a page to read. */
import type { Check } from '../case.ts';
import { dollars, figure, markdownTable } from '../markdown.ts';
import { bill, isDynamoDb, isStopCheck, type Measured, total } from './measure.ts';
import { hoursPerMonth, lambdaGigabytes, type Prices } from './prices.ts';
import { articleDollars, type Load, message, perWorker, settings } from './settings.ts';
import { writesPerConnection } from './targets.ts';

export type CostRun = { at: string; prices: Prices; measured: Measured[]; checks: Check[] };

export function costPage({ at, prices, measured, checks }: CostRun): string {
  const largest = measured
    .filter(({ load }) => load === 'idle')
    .reduce((a, b) => (b.connections > a.connections ? b : a));
  const sections = [
    '# What a fleet costs',
    `Counted by \`npm run bench:cost\` on ${at}: the real worker and the real reconciler in simulated time, each of their requests charged by DynamoDB's published rules (\`bench/world/units.ts\` names the page of each).`,
    settings.map(settingLine).join('\n'),
    `Up to ${perWorker} connections a worker. Items of ${largest.itemBytes} bytes; one of more than a kilobyte (a long token in its URL) takes a unit more at each write of it. Dollars are for a month of ${hoursPerMonth} hours on demand, by list prices without free tier: ${priceLine(prices)}. Not in here: Fargate, storage, logs, traffic, and what START and STOP cost.`,
    '## Held to',
    checks
      .map(
        ({ what, measured: found, mustBe, reached }) =>
          `- ${reached ? '' : '**missed** '}${what}: ${found} (${mustBe})`,
      )
      .join('\n'),
    '## Idle',
    comparison(measured, 'idle', prices),
    `The article counts one write for each heartbeat, at the price of its time, twice today's. It is three: the heartbeat moves the sort key of the index of orphans, which is a delete and a put.`,
    `## With ${message.everyMs / 1000} s between messages of ${message.bytes} bytes`,
    comparison(measured, 'messages', prices),
    'The difference to idle is one write unit for each message, under either setting.',
    '## Where it goes',
    'Two-level, idle, dollars a month. Lambda and most of CloudWatch are the reconciler, which is there for the whole fleet: it sweeps all the time, and publishes its metrics at each sweep.',
    parts(measured, prices),
    '## Writes',
    'Write units an hour, idle.',
    writes(measured),
    '## Reads',
    reads(measured),
    stopCheckLine(largest),
  ];
  return `${sections.join('\n\n')}\n`;
}

function settingLine({ name, env }: (typeof settings)[number]): string {
  const given = Object.entries(env).map(([variable, value]) => `${variable}=${value}`);
  return `- **${name}**: ${given.length === 0 ? 'the defaults' : given.join(' ')}`;
}

function priceLine(prices: Prices): string {
  return [
    `$${prices.write} and $${prices.read} for a million write and read units`,
    `$${prices.sqs} for a million requests to SQS`,
    `$${prices.putMetric} for a thousand PutMetricData and $${prices.metric} for a metric`,
    `$${prices.lambdaSecond} for a GB-second of Lambda (${lambdaGigabytes} GB)`,
  ].join(', ');
}

function comparison(all: Measured[], load: Load, prices: Prices): string {
  const pairs = all.filter((one) => one.load === load && one.setting === 'published');
  const rows = pairs.flatMap((published) => {
    const twoLevel = all.find(
      (one) =>
        one.load === load &&
        one.setting === 'two-level' &&
        one.connections === published.connections &&
        one.workers === published.workers,
    );
    if (!twoLevel) return [];
    const both = (of: (one: Measured) => string): [string, string] => [of(published), of(twoLevel)];
    const article = load === 'idle' ? articleDollars.get(published.connections) : undefined;
    return [
      [
        `${figure(published.connections)} on ${published.workers}`,
        ...both((one) => figure(writesPerConnection(one))),
        `${figure(writesPerConnection(published) / writesPerConnection(twoLevel))}×`,
        ...both((one) => figure(total(one, 'readUnits') / one.connections)),
        ...both((one) => figure(total(one, 'requests', isDynamoDb) / one.connections)),
        ...both((one) => dollars(bill(one, prices).write + bill(one, prices).read)),
        ...both((one) => dollars(bill(one, prices).total)),
        article === undefined ? '–' : dollars(article),
      ],
    ];
  });
  const head = [
    'connections on workers',
    'write units per connection-hour: published',
    'two-level',
    'below',
    'read units per connection-hour: published',
    'two-level',
    'requests to DynamoDB per connection-hour: published',
    'two-level',
    'DynamoDB a month: published',
    'two-level',
    'all of it: published',
    'two-level',
    'article says',
  ];
  return markdownTable([head, ...rows]);
}

const idleTwoLevel = (all: Measured[]) => all.filter((one) => one.load === 'idle' && one.setting === 'two-level');
const sizeOf = ({ connections, workers }: Measured): string => `${figure(connections)} on ${workers}`;

function parts(all: Measured[], prices: Prices): string {
  const rows = idleTwoLevel(all).map((one) => {
    const { write, read, sqs, cloudwatch, lambda, total: sum } = bill(one, prices);
    return [sizeOf(one), ...[write, read, sqs, cloudwatch, lambda, sum].map(dollars)];
  });
  return markdownTable([['', 'writes', 'reads', 'SQS', 'CloudWatch', 'Lambda', 'all'], ...rows]);
}

function writes(all: Measured[]): string {
  const rows = all
    .filter(({ load }) => load === 'idle')
    .map((one) => {
      const of = (name: string) => figure(total(one, 'writeUnits', ({ target }) => target === name));
      return [
        `${one.setting}, ${sizeOf(one)}`,
        of('connections'),
        of('connections/by_desired_state'),
        of('connections/by_owner'),
        of('workers'),
      ];
    });
  return markdownTable([['', 'connections', 'index by_desired_state', 'index by_owner', 'workers'], ...rows]);
}

function reads(all: Measured[]): string {
  const rows = idleTwoLevel(all).map((one) => [
    sizeOf(one),
    figure(total(one, 'readUnits', isStopCheck)),
    figure(total(one, 'readUnits', ({ who, target }) => who === 'reconciler' && target === 'workers')),
    figure(total(one, 'readUnits', ({ who, target }) => who === 'reconciler' && target !== 'workers')),
    figure(total(one, 'requests', ({ who, target }) => who === 'reconciler' && target !== 'cloudwatch')),
  ]);
  const head = [
    'read units an hour, two-level, idle',
    'STOP check',
    'reconciler: workers',
    'reconciler: orphans',
    'requests of the reconciler to DynamoDB and SQS',
  ];
  return markdownTable([head, ...rows]);
}

function stopCheckLine(largest: Measured): string {
  const perConnection = total(largest, 'readUnits', isStopCheck) / largest.connections;
  return `The STOP check grows with connections: each worker reads its own entries of the index by_owner every 5 s, half a unit for each 4 KB of them: ${figure(perConnection)} units per connection-hour. STOP_CHECK_EVERY divides it. The reconciler reads the workers table at each sweep, which grows by a unit with every dozen rows or so (the living, and the dead of the last day), and once a minute each of the SHARDS parts of the index of orphans, half a unit while it is empty. Neither sees a connection that is owned.`;
}
