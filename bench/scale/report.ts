/** The figures as a page to read. */
import { type Check, inSeconds } from '../case.ts';
import { isDynamoDb } from '../cost/measure.ts';
import { figure, markdownTable } from '../markdown.ts';
import type { Line } from '../world/ledger.ts';
import type { Recovery } from './disaster.ts';
import type { Assumptions } from './scenarios.ts';
import { shardsToCompare, takes } from './shards.ts';

export type ScaleRun = {
  at: string;
  quick: boolean;
  assumed: Assumptions;
  recoveries: Recovery[];
  checks: Check[];
};

export function scalePage({ at, quick, assumed, recoveries, checks }: ScaleRun): string {
  const sections = [
    '# At scale',
    `By \`npm run bench:scale${quick ? ' -- --quick' : ''}\` on ${at}: the real worker and the real reconciler over AWS in memory, in simulated time. The processor takes no time there: these figures are about the protocol, its requests and their limits, not about how busy a worker gets.`,
    assumptions(assumed),
    '## Held to',
    checks
      .map(({ what, measured, mustBe, reached }) => `- ${reached ? '' : '**missed** '}${what}: ${measured} (${mustBe})`)
      .join('\n'),
    '## A third of the workers gone at once',
    recovered(recoveries),
    'Times count from the first report, or from the death of those that nobody reports. Of a lease of 20 s at most 5 s had passed; the allowed skew and a sweep come on top.',
    ...notes(recoveries),
    '## What it takes',
    'Requests and DynamoDB units of the whole fleet until all were owned again.',
    requests(recoveries),
    '## What the index of orphans takes',
    'One key of an index takes 1,000 writes a second, and an acquisition is two. A START, a renewal and a release each move the entry as well.',
    shards(recoveries),
    '## With nothing orphaned',
    'What the reconciler does all the same.',
    nothing(recoveries),
    'A sweep reads the workers table, by its size. The first of each minute also asks each key of the index of orphans, which answers with nothing.',
  ];
  return `${sections.join('\n\n')}\n`;
}

function assumptions(assumed: Assumptions): string {
  return [
    'Assumed, each a flag of the command:',
    '',
    `- a request takes ${assumed.dynamodbMs} ms to DynamoDB and ${assumed.sqsMs} ms to SQS, half of it to one and a half times; ${assumed.connectMs} ms to open a socket`,
    `- an index is ${assumed.indexLagMs} ms behind its table; the count of waiting wake-ups is ${assumed.depthLagMs / 1000} s old`,
    `- the reports of tasks that ended together come within ${assumed.reportsWithinMs / 1000} s, each to a container of its own that starts in ${assumed.coldStartMs} ms`,
    '- one key of an index takes 1,000 write units a second and no burst; a table and each of its indexes take any number, but 4,000 where they are "as new"',
  ].join('\n');
}

const sizeOf = ({ disaster }: Recovery): string =>
  `${figure(disaster.connections)} on ${disaster.workers}, ${disaster.name}`;

/** Of all of them, so that one that took too long is never the last. */
function quantile(sorted: number[], share: number, of: number): string {
  const place = Math.min(of - 1, Math.floor(of * share));
  return inSeconds(sorted[place] ?? Number.POSITIVE_INFINITY).replace('never', 'over 120 s');
}

function recovered(recoveries: Recovery[]): string {
  const rows = recoveries.map((one) => [
    sizeOf(one),
    figure(one.orphans),
    ...[0.5, 0.99, 1].map((share) => quantile(one.ownedMs, share, one.orphans)),
    quantile(one.openMs, 1, one.orphans),
    figure(one.throttled),
  ]);
  return markdownTable([
    ['connections on workers', 'orphans', 'owned again: median', 'p99', 'last', 'open again: last', 'writes throttled'],
    ...rows,
  ]);
}

function notes(recoveries: Recovery[]): string[] {
  const most = Math.max(...recoveries.map(({ disaster }) => disaster.connections));
  const room = recoveries.find(({ disaster }) => disaster.connections === most)?.disaster.env['MAX_CONNECTIONS'];
  if (room === undefined) return [];
  return [
    `With ${figure(most)} connections MAX_CONNECTIONS is ${room}: what is left has to have room for all. At 700, as by default, it would be full before, and the rest would wait for the tasks that replace the dead ones. The default target of scaling, 490 of 700, has the same gap: a third of the workers gone needs 735 of each that is left.`,
  ];
}

function requests(recoveries: Recovery[]): string {
  const rows = recoveries.map(({ lines, ...one }) => {
    const by = (who: Line['who'], service: (line: Line) => boolean) =>
      figure(lines.filter((line) => line.who === who && service(line)).reduce((sum, line) => sum + line.requests, 0));
    const units = (of: 'writeUnits' | 'readUnits') => lines.reduce((sum, line) => sum + line[of], 0) / one.orphans;
    const sqs = ({ target }: Line) => target === 'sqs';
    return [
      sizeOf({ lines, ...one }),
      by('reconciler', isDynamoDb),
      by('reconciler', sqs),
      by('worker', isDynamoDb),
      by('worker', sqs),
      figure(units('writeUnits')),
      figure(units('readUnits')),
    ];
  });
  return markdownTable([
    [
      'connections on workers',
      'reconciler: to DynamoDB',
      'to SQS',
      'workers: to DynamoDB',
      'to SQS',
      'write units per orphan',
      'read units per orphan',
    ],
    ...rows,
  ]);
}

function shards(recoveries: Recovery[]): string {
  const most = Math.max(...recoveries.map(({ disaster }) => disaster.connections));
  const rows = shardsToCompare.map((count) => {
    const { writesPerSecond, acquisitionsPerSecond, publishedConnections, twoLevelConnections } = takes(count);
    const tried = recoveries.find(
      ({ disaster }) =>
        disaster.connections === most &&
        disaster.reported &&
        disaster.perTable === undefined &&
        (disaster.env['SHARDS'] ?? '16') === String(count),
    );
    const atLeastMs = ((tried?.orphans ?? 0) / acquisitionsPerSecond) * 1000;
    return [
      String(count),
      figure(writesPerSecond),
      figure(publishedConnections),
      figure(twoLevelConnections),
      figure(acquisitionsPerSecond),
      tried ? inSeconds(atLeastMs) : '–',
      tried ? quantile(tried.ownedMs, 1, tried.orphans) : '–',
      tried ? figure(tried.throttled) : '–',
    ];
  });
  return markdownTable([
    [
      'SHARDS',
      'writes a second',
      'full with the renewals of so many connections: published',
      'two-level',
      'acquisitions a second',
      `the ${figure(most)} above need at least`,
      'took',
      'writes throttled',
    ],
    ...rows,
  ]);
}

function nothing(recoveries: Recovery[]): string {
  const mean = (list: number[]) => `${figure(list.reduce((sum, ms) => sum + ms, 0) / Math.max(1, list.length))} ms`;
  const different = recoveries.filter(({ disaster }) => disaster.reported && disaster.perTable === undefined);
  const rows = different.map(({ disaster, quiet }) => [
    `${figure(disaster.connections)} on ${disaster.workers}, SHARDS=${disaster.env['SHARDS'] ?? 16}`,
    figure(quiet.requests),
    figure(quiet.readUnits),
    figure(quiet.readUnits / quiet.sweeps),
    mean(quiet.sweepsMs),
    mean([quiet.scanMs]),
  ]);
  return markdownTable([
    [
      'connections on workers',
      'requests a minute',
      'read units a minute',
      'read units a sweep',
      'a sweep takes',
      'the one with the scan takes',
    ],
    ...rows,
  ]);
}
