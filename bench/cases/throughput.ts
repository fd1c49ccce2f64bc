import { setTimeout as sleep } from 'node:timers/promises';
import { atLeast, type Case } from '../case.ts';
import { idsOf } from '../fleet.ts';
import { cpuSeconds } from '../machine.ts';
import { over } from '../metrics-log.ts';

const CONNECTIONS = 2_000;
const OFFERED_PER_SECOND = 5;
const TARGET = 5_000;
const WARM_UP_MS = 15_000;

/** The machine may store less than is offered: DynamoDB is on it too. So what counts is what a second of the worker's processor stores. */
export const throughput: Case = {
  name: 'throughput',
  what: 'stored messages per worker CPU-second, 2,000 connections offering 5 messages/s each',
  mustBe: '5,000 or more, on what the machine can take',
  published: '800–970, then it falls behind (676 of 1,000 a second)',
  async run(bench) {
    const fleet = await bench.fleet({ workers: 1, env: { MAX_CONNECTIONS: '2500', METRICS_EVERY: '1' } });
    const worker = fleet.system.worker(1);
    const ids = idsOf('busy', bench.quick ? 400 : CONNECTIONS);
    await fleet.start(ids, { rate: 0, atOnce: 30 });
    await fleet.allOpen(ids, 60_000);
    bench.say(`${ids.length} are open, and quiet`);
    await sleep(WARM_UP_MS);
    const forMs = bench.quick ? 10_000 : 30_000;
    const idle = await over(worker, forMs);
    await fleet.source.control({ rate: OFFERED_PER_SECOND });
    bench.say(`each is sent ${OFFERED_PER_SECOND} messages a second`);
    await sleep(WARM_UP_MS);
    const { pids } = fleet.system;
    const dynamodbBefore = await cpuSeconds(pids.dynamodb);
    const busy = await over(worker, 2 * forMs);
    const dynamodbCpu = (await cpuSeconds(pids.dynamodb)) - dynamodbBefore;
    const { MessagesStored: stored = 0, SocketsPaused: paused = 0, SinkRetries: retries = 0 } = busy.counts;
    const perSecond = stored / busy.seconds;
    const idleShare = idle.cpuSeconds / idle.seconds;
    const forMessages = busy.cpuSeconds - idleShare * busy.seconds;
    return {
      checks: [atLeast('stored per CPU-second of the worker', stored / busy.cpuSeconds, TARGET, 'messages')],
      notes: [
        `stored ${Math.round(perSecond)} a second of ${ids.length * OFFERED_PER_SECOND} offered`,
        `the worker used ${percent(busy.cpuSeconds / busy.seconds)} of a core, DynamoDB ${percent(dynamodbCpu / busy.seconds)}`,
        `holding ${ids.length} without messages it used ${percent(idleShare)} of a core; less that, ${Math.round(stored / forMessages)} messages per CPU-second`,
        `sockets paused ${paused} times, batches tried again ${retries} times`,
      ],
    };
  },
};

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
