/** What a fleet is held to at scale. */
import { atMost, type Check, holds } from '../case.ts';
import { figure } from '../markdown.ts';
import type { Recovery } from './disaster.ts';

const target = { connections: 10_000, ownedAgainMs: 15_000 };

/** With the default number of keys, and tables that were warmed. */
const byDefault = ({ disaster }: Recovery): boolean =>
  disaster.env['SHARDS'] === undefined && disaster.perTable === undefined;

export function checksOf(recoveries: Recovery[]): Check[] {
  const tried = recoveries.filter(byDefault);
  const reported = tried.find(({ disaster }) => disaster.connections === target.connections && disaster.reported);
  const complete = ({ ownedMs, openMs, orphans }: Recovery) => ownedMs.length === orphans && openMs.length === orphans;
  const perSweep = [...new Set(tried.map(({ quiet }) => quiet.requests / quiet.sweeps))];
  return [
    atMost(
      `${figure(target.connections)} connections, a third of their workers killed: all owned again, from the first report`,
      reported && complete(reported) ? (reported.ownedMs.at(-1) ?? Number.NaN) : Number.NaN,
      target.ownedAgainMs,
    ),
    holds(
      'with the default settings all are owned again, and open',
      tried.every(complete),
      `${tried.filter(complete).length} of ${tried.length} cases`,
    ),
    holds(
      'a minute of sweeps with nothing orphaned makes as many requests, however many connections there are',
      perSweep.length === 1,
      `${perSweep.map(figure).join(' and ')} a sweep`,
    ),
  ];
}
