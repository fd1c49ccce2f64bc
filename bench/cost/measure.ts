/** Runs one fleet for a while and tells what an hour of it takes. */
import { SimulatedFleet } from '../world/fleet.ts';
import type { Line } from '../world/ledger.ts';
import { tableNames } from '../world/tables.ts';
import { itemBytes } from '../world/units.ts';
import { hoursPerMonth, lambdaGigabytes, type Prices } from './prices.ts';
import { type Load, message, messagesMs, type Setting, type Size } from './settings.ts';

export type Measured = Size & {
  setting: Setting['name'];
  load: Load;
  /** Of one hour of the whole fleet. */
  lines: Line[];
  lambdaGbSeconds: number;
  invocations: number;
  metrics: number;
  /** Of the largest item of the connections table. */
  itemBytes: number;
};

const hourMs = 3_600_000;

export async function measure(setting: Setting, load: Load, size: Size): Promise<Measured> {
  const begin = Promise.withResolvers<void>();
  let over = false;
  const messages = { ...message, begun: begin.promise, over: () => over };
  const fleet = new SimulatedFleet({
    ...size,
    env: setting.env,
    traffic: { connectMs: 50, ...(load === 'messages' ? { messages } : {}) },
  });
  await fleet.begin();
  fleet.schedule();
  await fleet.time.runFor(setting.settleMs);
  fleet.ledger.clear();
  begin.resolve();
  await fleet.time.runFor(messagesMs);
  over = true;
  await fleet.time.runFor(setting.windowMs - messagesMs);
  const { ledger } = fleet;
  const perHour = hourMs / setting.windowMs;
  return {
    ...size,
    setting: setting.name,
    load,
    lines: ledger.lines.map((line) => scaled(line, ofMessages(line) ? hourMs / messagesMs : perHour)),
    lambdaGbSeconds: (ledger.lambdaMs / 1000) * lambdaGigabytes * perHour,
    invocations: ledger.invocations * perHour,
    metrics: ledger.metricNames.size,
    itemBytes: Math.max(...[...fleet.store.table(tableNames.connections).all()].map(itemBytes)),
  };
}

const ofMessages = ({ target, operation }: Line): boolean =>
  target === tableNames.messages && operation === 'BatchWriteItem';

function scaled(line: Line, by: number): Line {
  const { requests, refused, writeUnits, readUnits } = line;
  return {
    ...line,
    requests: requests * by,
    refused: refused * by,
    writeUnits: writeUnits * by,
    readUnits: readUnits * by,
  };
}

type Countable = 'requests' | 'writeUnits' | 'readUnits';

export function total({ lines }: Measured, of: Countable, where: (line: Line) => boolean = () => true): number {
  return lines.filter(where).reduce((sum, line) => sum + line[of], 0);
}

export const isStopCheck = ({ who, target }: Line): boolean => who === 'worker' && target === 'connections/by_owner';
export const isDynamoDb = ({ target }: Line): boolean => target !== 'sqs' && target !== 'cloudwatch';

export type Bill = { write: number; read: number; sqs: number; cloudwatch: number; lambda: number; total: number };

/** Dollars a month. */
export function bill(measured: Measured, prices: Prices): Bill {
  const million = hoursPerMonth / 1_000_000;
  const requestsTo = (service: string) => total(measured, 'requests', ({ target }) => target === service);
  const parts = {
    write: total(measured, 'writeUnits') * million * prices.write,
    read: total(measured, 'readUnits') * million * prices.read,
    sqs: requestsTo('sqs') * million * prices.sqs,
    cloudwatch: requestsTo('cloudwatch') * (hoursPerMonth / 1000) * prices.putMetric + measured.metrics * prices.metric,
    lambda:
      measured.lambdaGbSeconds * hoursPerMonth * prices.lambdaSecond +
      measured.invocations * million * prices.lambdaRequests,
  };
  return { ...parts, total: Object.values(parts).reduce((sum, dollars) => sum + dollars, 0) };
}
