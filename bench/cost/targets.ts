/** What the cost is held to. */
import { type Check, holds } from '../case.ts';
import { figure } from '../markdown.ts';
import { isDynamoDb, isStopCheck, type Measured, total } from './measure.ts';
import { fewOnMany, sizes } from './settings.ts';

const timesBelow = 200;

const others = (measured: Measured): number => total(measured, 'readUnits', (line) => !isStopCheck(line));

export const writesPerConnection = (measured: Measured): number => total(measured, 'writeUnits') / measured.connections;

export function checksOf(all: Measured[]): Check[] {
  const idle = (setting: Measured['setting'], connections: number, workers: number) =>
    all.find(
      (one) =>
        one.load === 'idle' && one.setting === setting && one.connections === connections && one.workers === workers,
    );
  const { connections, workers } = sizes.at(-1) ?? fewOnMany;
  const published = idle('published', connections, workers);
  const twoLevel = idle('two-level', connections, workers);
  const few = idle('two-level', fewOnMany.connections, fewOnMany.workers);
  if (!published || !twoLevel || !few) return [];
  const times = writesPerConnection(published) / writesPerConnection(twoLevel);
  return [
    {
      what: `write units per idle connection-hour, ${connections.toLocaleString('en-US')} connections on ${workers} workers`,
      measured: `${figure(times)} times below the published setting`,
      mustBe: `≥ ${timesBelow} times`,
      reached: times >= timesBelow,
    },
    holds(
      `reads beside the STOP check are the same for ${fewOnMany.connections} and ${connections.toLocaleString('en-US')} connections on ${workers} workers, with no orphans`,
      others(few) === others(twoLevel),
      `${figure(others(few))} and ${figure(others(twoLevel))} read units an hour`,
    ),
    holds(
      'nothing is refused while nothing happens',
      twoLevel.lines.filter(isDynamoDb).every(({ refused }) => refused === 0),
      `${figure(twoLevel.lines.reduce((sum, { refused }) => sum + refused, 0))} refused writes an hour`,
    ),
  ];
}
