/** What a fleet is held to at scale. */
import { atMost, type Check, holds } from '../case.ts';
import { figure } from '../markdown.ts';
import type { Recovery } from './disaster.ts';
import type { Quiet } from './quiet.ts';

const target = { connections: 10_000, ownedAgainMs: 15_000 };

export function checksOf(quiet: Quiet[], recoveries: Recovery[]): Check[] {
  const reported = recoveries.find(
    ({ disaster }) =>
      disaster.connections === target.connections && disaster.reported && disaster.env['SHARDS'] === undefined,
  );
  const complete = recoveries.every(
    ({ ownedMs, openMs, orphans }) => ownedMs.length === orphans && openMs.length === orphans,
  );
  return [
    atMost(
      `${figure(target.connections)} connections, a third of their workers killed: all owned again, from the first report`,
      reported?.ownedMs.at(-1) ?? Number.NaN,
      target.ownedAgainMs,
    ),
    holds('in each case all are owned again, and open', complete, complete ? 'all' : 'not all'),
    holds(
      'a sweep with nothing orphaned makes as many requests, however many connections there are',
      new Set(quiet.map(({ requests, sweeps }) => requests / sweeps)).size === 1,
      quiet.map(({ requests, sweeps }) => figure(requests / sweeps)).join(' and '),
    ),
  ];
}
