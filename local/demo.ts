/**
 * `npm run demo`: what holdfast is for, told in under two minutes with real processes and sockets. Exits with 0 only if it came out.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiClient, SourceClient } from './client.ts';
import { bold, green, messageOf, red, say, seconds, step, table } from './console.ts';
import { gapsSince, percentile, waitFor } from './measure.ts';
import { missing, storedMessages } from './messages.ts';
import type { Report } from './source/ledger.ts';
import { System } from './system.ts';

const CONNECTIONS = 50;
const MESSAGES_PER_SECOND = 2;
const setting = (name: string, fallback: number): number => Number(process.env[name] ?? fallback) * 1000;
const leaseMs = setting('LEASE_SECONDS', 20);
const sweepMs = setting('SWEEP_EVERY', 5);
const stopCheckMs = setting('STOP_CHECK_EVERY', 5);

interface Line {
  what: string;
  /** In ms, one for each connection that it concerned. */
  took: number[];
  boundMs: number;
}

const system = new System({ workers: 3, dir: '.local/demo', onStep: step, onDied: (error) => void end(error) });
process.once('SIGINT', () => void end(new Error('interrupted')));
process.once('SIGTERM', () => void end(new Error('interrupted')));

say(bold('holdfast: the demo'));
try {
  await system.start();
  const cameOut = await tell(new ApiClient(system.apiUrl, system.apiKey), new SourceClient(system.sourceUrl));
  await end(cameOut ? null : new Error('it did not come out as it should'));
} catch (error) {
  await end(error);
}

async function tell(api: ApiClient, source: SourceClient): Promise<boolean> {
  const ids = Array.from({ length: CONNECTIONS }, (_, index) => `demo-${index + 1}`);
  const lines: Line[] = [];

  say(`\n${bold('The story')}`);
  await step(
    `START ${CONNECTIONS} connections through the API, ${MESSAGES_PER_SECOND} messages a second each`,
    async () => {
      const begunAt = Date.now();
      await Promise.all(
        ids.map(async (id) => {
          const url = `${system.sourceUrl}/${id}?last_seq={last_seq}&rate=${MESSAGES_PER_SECOND}`;
          const { status, body } = await api.start(id, url);
          if (status >= 300) throw new Error(`START of ${id} was answered with ${status}: ${JSON.stringify(body)}`);
        }),
      );
      const reports = await allOpen(source, 15_000);
      lines.push({
        what: 'START to open socket',
        took: reports.map((one) => (one.connects[0]?.at ?? 0) - begunAt),
        boundMs: 5_000,
      });
    },
  );

  await step('Messages flow', () => stored(ids, 5));

  for (const { signal, number, what, boundMs } of [
    { signal: 'SIGKILL', number: 1, what: 'Worker 1 is killed (SIGKILL)', boundMs: leaseMs + sweepMs + 2_000 },
    { signal: 'SIGTERM', number: 2, what: 'Worker 2 is asked to leave (SIGTERM)', boundMs: 2_000 },
  ] as const) {
    await step(`${what}; everything is held again`, async () => {
      const sinceMs = Date.now();
      const gone = system.worker(number).ended();
      system.killWorker(number, signal);
      await gone;
      const reports = await allOpen(source, boundMs + 20_000);
      lines.push({ what: `${signal} to held again`, took: gapsSince(reports, sinceMs), boundMs });
    });
    // So that what a new socket brings is stored too.
    await sleep(2_000);
  }

  await step('STOP for all', async () => {
    const begunAt = Date.now();
    await Promise.all(ids.map((id) => api.stop(id)));
    const reports = await waitFor('every socket closed', stopCheckMs + 15_000, async () => {
      const { connections } = await source.report();
      return connections.every((one) => one.open === 0) ? connections : null;
    });
    const took = reports.map((one) => (one.disconnects.at(-1)?.at ?? 0) - begunAt);
    lines.push({ what: 'STOP to closed socket', took, boundMs: stopCheckMs + 3_000 });
  });

  return settle(ids, source, lines);
}

/** The account: what is in the table, and what the source saw. */
async function settle(ids: string[], source: SourceClient, lines: Line[]): Promise<boolean> {
  let messages = 0;
  let lost = 0;
  let twice = 0;
  for (const id of ids) {
    const stored = await storedMessages(system.dynamodb, system.tables.messages, id);
    messages += stored.length;
    lost += missing(stored).length;
    twice += stored.length - new Set(stored.map((message) => message.data)).size;
  }
  const { summary } = await source.report();
  const counts: [string, number][] = [
    ['messages lost', lost],
    ['messages twice', twice],
    ['sockets held twice', summary.heldTwice],
  ];
  const mark = (good: boolean): string => (good ? green('✔') : red('✘'));
  const inTime = ({ took, boundMs }: Line): boolean => took.length > 0 && Math.max(...took) <= boundMs;
  say(`\n${bold('How it came out')}`);
  say(
    table([
      ['', 'connections', 'median', 'longest', 'at most', ''],
      ...lines.map((line) => [
        line.what,
        String(line.took.length),
        seconds(percentile(line.took, 0.5)),
        seconds(Math.max(...line.took)),
        seconds(line.boundMs),
        mark(inTime(line)),
      ]),
    ]),
  );
  say();
  say(
    table([
      ['messages stored', String(messages), mark(messages > 0)],
      ...counts.map(([what, count]) => [what, String(count), mark(count === 0)]),
    ]),
  );
  return messages > 0 && lines.every(inTime) && counts.every(([, count]) => count === 0);
}

async function allOpen(source: SourceClient, withinMs: number): Promise<Report[]> {
  return waitFor('every connection has one socket', withinMs, async () => {
    const { connections } = await source.report();
    return connections.length === CONNECTIONS && connections.every((one) => one.open > 0) ? connections : null;
  });
}

/** Waits until each connection has `count` messages in the table. */
async function stored(ids: string[], count: number): Promise<void> {
  await waitFor(`${count} messages of each connection in the table`, 20_000, async () => {
    for (const id of ids) {
      const messages = await storedMessages(system.dynamodb, system.tables.messages, id);
      if (messages.length < count) return null;
    }
    return true;
  });
}

async function end(error: unknown): Promise<never> {
  if (error !== null) say(`\n${red('✘')} ${messageOf(error)} (logs: ${system.logDir})`);
  await system.stop();
  if (error === null) say(`\n${green('It came out.')}`);
  process.exit(error === null ? 0 : 1);
}
