/** Connections in every state that a reconciler may find them in, and what it sent about them. */
import { ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { MassGuard } from '../../functions/mass-guard.ts';
import type { SweepParts } from '../../functions/sweep.ts';
import { systemClock } from '../../shared/clock.ts';
import { type Connection, decideStart, decideStop, idOf, pkOf } from '../../shared/connection.ts';
import { createLog } from '../../shared/log.ts';
import { createMetrics, type MetricName } from '../../shared/metrics.ts';
import { sqsQueue } from '../../shared/queue.ts';
import { connectionsTable } from '../../shared/tables/connections.ts';
import { leasesTable } from '../../shared/tables/leases.ts';
import { workersTable } from '../../shared/tables/workers.ts';
import type { TestAws } from './aws.ts';
import { workerLease } from './worker-parts.ts';

export const shards = 4;
const lease = { forMs: 20_000, skewMs: 1_000 };

export type Orphanage = ReturnType<typeof orphanage>;

export function orphanage(aws: TestAws) {
  const connections = connectionsTable(aws.dynamodb, aws.tables.connections, { shards, stoppedTtlMs: 60_000 });
  const leases = leasesTable(aws.dynamodb, aws.tables.connections, { shards });
  const queue = sqsQueue(aws.sqs, { queueUrl: aws.queueUrl, longPollSeconds: 1, clock: systemClock });
  const workers = workersTable(aws.dynamodb, aws.tables.workers);
  const log = createLog('silent', {});

  async function start(id: string, at = Date.now()): Promise<void> {
    const decision = decideStart(undefined, { wsUrl: 'wss://feed.example.com/', source: { name: 'plain' } });
    if (decision.outcome === 'changed') await connections.want(pkOf(id), decision.intent, undefined, at);
  }

  /** Wanted anew, after a STOP. */
  async function restart(id: string): Promise<void> {
    const seen = await connections.get(pkOf(id));
    const decision = decideStart(seen, { wsUrl: 'wss://feed.example.com/', source: { name: 'plain' } });
    if (decision.outcome === 'changed') await connections.want(pkOf(id), decision.intent, seen, Date.now());
  }

  async function stop(id: string): Promise<void> {
    const seen = await connections.get(pkOf(id));
    const decision = decideStop(seen, {});
    if (decision.outcome === 'changed') await connections.want(pkOf(id), decision.intent, seen, Date.now());
  }

  async function claim(id: string, owner: string, forMs = 600_000): Promise<Connection> {
    const claimed = await leases.acquire(pkOf(id), owner, Date.now() + forMs, Date.now());
    if (claimed === 'refused') throw new Error(`${id} was not claimed`);
    return claimed;
  }

  /** Its next try is due in `forMs`. */
  async function park(id: string, forMs: number): Promise<void> {
    const { pk, leaseEpoch: epoch } = await claim(id, 'worker-p');
    const status = { status: 'RETRYING', reason: 'refused', attempts: 10 } as const;
    const given = { lastSeq: undefined, status, notBeforeMs: Date.now() + forMs };
    await leases.release({ pk, owner: 'worker-p', epoch }, given, Date.now());
  }

  /** Takes all that is in the queue. @returns ids, in order */
  async function wakeUps(): Promise<string[]> {
    const taken: string[] = [];
    for (;;) {
      const request = { QueueUrl: aws.queueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 0 };
      const { Messages: messages = [] } = await aws.sqs.send(new ReceiveMessageCommand(request));
      if (messages.length === 0) return taken.sort();
      taken.push(...messages.map(({ Body: body }) => idOf((JSON.parse(body ?? '') as { pk: string }).pk)));
    }
  }

  /** Nothing that is wanted, and nothing in the queue. */
  async function empty(): Promise<void> {
    for (let shard = 0; shard < shards; shard++) {
      for (const { pk } of (await connections.inBucket('STARTED', shard)).rows) await stop(idOf(pk));
    }
    await wakeUps();
  }

  /** What a sweep needs, and what it published. */
  function parts(change: Partial<SweepParts> = {}) {
    const published: Partial<Record<MetricName, number>>[] = [];
    const metrics = createMetrics(async (data) => {
      published.push(Object.fromEntries(data.map(({ name, value }) => [name, value])));
    }, log);
    const tables = { connections, leases, workers };
    const deaths = { workerLease: workerLease === 'on', lease, guard: new MassGuard(lease.forMs) };
    const seen = { orphans: 0, oldestAgeMs: 0 };
    const same = { ...tables, ...deaths, seen, queue, shards, clock: systemClock, metrics, log, random: () => 0 };
    return { published, parts: { ...same, ...change } };
  }

  return { connections, leases, workers, queue, start, restart, stop, claim, park, wakeUps, empty, parts };
}
