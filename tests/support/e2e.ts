/** The local system for one end-to-end file: real processes with short times, and what its tests ask of it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { MassGuard } from '../../functions/mass-guard.ts';
import { sweep } from '../../functions/sweep.ts';
import { SourceClient } from '../../local/client.ts';
import { waitFor } from '../../local/measure.ts';
import { missing, type StoredMessage, storedMessages } from '../../local/messages.ts';
import type { Report } from '../../local/source/ledger.ts';
import { type System, type SystemOptions, startSystem } from '../../local/system.ts';
import type { StoppedTask, WorkerProcess } from '../../local/worker-process.ts';
import { systemClock } from '../../shared/clock.ts';
import { type Connection, type SourceChoice } from '../../shared/connection.ts';
import { sqsQueue } from '../../shared/queue.ts';
import { connectionsTable } from '../../shared/tables/connections.ts';
import { leasesTable } from '../../shared/tables/leases.ts';
import { type WorkerReport, workersTable } from '../../shared/tables/workers.ts';
import { wishes } from './wishes.ts';
import { configOf, countedMetrics, keptLog } from './worker-parts.ts';

/** Everything that takes seconds by default takes about one here; the relations between the times are the usual ones. */
export const shortTimes = {
  LEASE_SECONDS: '6',
  HEARTBEAT_EVERY: '1.5',
  REQUEST_TIMEOUT: '1.2',
  CLOCK_SKEW: '0.5',
  SWEEP_EVERY: '1',
  STOP_CHECK_EVERY: '1',
  LONG_POLL: '1',
  STOP_TIMEOUT: '20',
  CONNECT_TIMEOUT: '3',
  CLOSE_TIMEOUT: '1',
  STABLE_AFTER: '1',
  REDIAL_BASE: '0.2',
  REDIAL_CAP: '1',
};
export const leaseMs = 6_000;
export const sweepMs = 1_000;

type Options = Pick<SystemOptions, 'workers' | 'api' | 'reportStops' | 'restartWorkers'> & {
  env?: Record<string, string>;
};

/** @param name of the test file: its logs are kept below `.local/e2e/` */
export async function startRig(name: string, options: Options = {}): Promise<Rig> {
  const { env = {}, workers = 1, api = false, reportStops = true, restartWorkers = false } = options;
  const tasks: StoppedTask[] = [];
  const system = await startSystem({
    workers,
    api,
    reportStops,
    restartWorkers,
    dir: `.local/e2e/${name}`,
    env: { ...process.env, ...shortTimes, ...env },
    onTaskStopped: (task) => tasks.push(task),
  });
  return new Rig(system, tasks);
}

export class Rig {
  readonly system: System;
  readonly source: SourceClient;
  /** Workers that have ended, in that order. */
  readonly tasks: StoppedTask[];
  readonly wishes: ReturnType<typeof wishes>;
  readonly #parts: Parameters<typeof sweep>[0];
  readonly #pids = new Set<number>();
  readonly #over = new AbortController();
  readonly #sweeping: Promise<void>[] = [];

  constructor(system: System, tasks: StoppedTask[]) {
    this.system = system;
    this.tasks = tasks;
    this.source = new SourceClient(system.sourceUrl);
    const config = configOf({ ...shortTimes, QUEUE_URL: system.queueUrl });
    const clock = systemClock;
    const connections = connectionsTable(system.dynamodb, system.tables.connections, config);
    const queue = sqsQueue(system.sqs, { ...config, clock });
    const quiet = { log: keptLog(), metrics: countedMetrics(), random: Math.random };
    const leases = leasesTable(system.dynamodb, system.tables.connections, config);
    const workers = workersTable(system.dynamodb, system.tables.workers);
    const { shards, lease, workerLease } = config;
    const deaths = { leases, workers, lease, workerLease, guard: new MassGuard(lease.forMs) };
    this.#parts = { connections, queue, clock, shards, ...deaths, seen: { orphans: 0, oldestAgeMs: 0 }, ...quiet };
    this.wishes = wishes({ connections });
    this.#notePids();
  }

  /** What the reconciler does by its schedule, for systems without functions. Called twice, there are two of them. */
  keepSweeping(): void {
    const { forMs } = this.#parts.lease;
    const parts = { ...this.#parts, guard: new MassGuard(forMs), seen: { orphans: 0, oldestAgeMs: 0 } };
    const keepOn = async () => {
      while (!this.#over.signal.aborted) {
        await sweep(parts, { dryRun: false, scan: true });
        await systemClock.sleep(sweepMs, this.#over.signal);
      }
    };
    this.#sweeping.push(keepOn());
  }

  /** What is remembered of a worker, living or dead. */
  async workerRow(id: string): Promise<WorkerReport | undefined> {
    return (await this.workerRows()).find(({ workerId }) => workerId === id);
  }

  workerRows(): Promise<WorkerReport[]> {
    return this.#parts.workers.all();
  }

  /** Which of these connections this worker owns by the table. */
  async ownedBy(workerId: string | null, ids: string[]): Promise<string[]> {
    const items = await Promise.all(ids.map((id) => this.item(id)));
    return ids.filter((_, index) => items[index]?.leaseOwner === workerId);
  }

  /** A connection's address at the source, which resumes where the URL says. */
  url(id: string, query = ''): string {
    return `${this.system.sourceUrl}/${id}?last_seq={last_seq}${query}`;
  }

  /** START, as the API writes it: the wish, then the hint. */
  async start(id: string, wish: { wsUrl?: string; source?: SourceChoice } = {}): Promise<void> {
    const pk = await this.wishes.start(id, { wsUrl: this.url(id), source: { name: 'numbered' }, ...wish });
    await this.#parts.queue.send({ pk });
  }

  /** Many at once, at `rate` messages a second each, and waits until all are open. */
  async startAll(ids: string[], rate: number): Promise<void> {
    await Promise.all(ids.map((id) => this.start(id, { wsUrl: this.url(id, `&rate=${rate}`) })));
    await this.allOpen(ids);
  }

  item(id: string): Promise<Connection> {
    return this.wishes.item(id);
  }

  itemBecomes(id: string, what: string, is: (item: Connection) => boolean, withinMs = 10_000): Promise<Connection> {
    return waitFor(`${id} ${what}`, withinMs, async () => {
      const now = await this.item(id);
      return is(now) ? now : null;
    });
  }

  /** What the source has seen of one id. */
  async seen(id: string): Promise<Report> {
    const found = (await this.source.report()).connections.find((report) => report.id === id);
    if (!found) throw new Error(`the source knows no ${id}`);
    return found;
  }

  seenBecomes(id: string, what: string, is: (report: Report) => boolean, withinMs = 10_000): Promise<Report> {
    return waitFor(`${id} ${what}`, withinMs, async () => {
      const report = (await this.source.report()).connections.find((one) => one.id === id);
      return report && is(report) ? report : null;
    });
  }

  /** Exactly one socket each. */
  async allOpen(ids: string[], withinMs = 15_000): Promise<void> {
    await waitFor(`one socket for each of ${ids.length} connections`, withinMs, async () => {
      const { connections } = await this.source.report();
      const open = new Map(connections.map((report) => [report.id, report.open]));
      return ids.every((id) => open.get(id) === 1) ? true : null;
    });
  }

  /** A worker that holds some of them, and which. The queue gives to whom it likes. */
  async holder(ids: string[], among = this.system.workers): Promise<{ worker: WorkerProcess; held: string[] }> {
    for (const worker of among) {
      const held = worker.workerId === null ? [] : await this.ownedBy(worker.workerId, ids);
      if (held.length > 0) return { worker, held };
    }
    throw new Error('none of these workers holds anything');
  }

  /** Each has lost its socket since then, and has one again. */
  async reopened(ids: string[], sinceMs: number, withinMs = 15_000): Promise<void> {
    await waitFor(`${ids.length} connections to be held again`, withinMs, async () => {
      const { connections } = await this.source.report();
      const back = connections.filter(
        ({ open, disconnects }) => open === 1 && (disconnects.at(-1)?.at ?? 0) >= sinceMs,
      );
      const known = new Set(back.map(({ id }) => id));
      return ids.every((id) => known.has(id)) || null;
    });
  }

  stored(id: string): Promise<StoredMessage[]> {
    return storedMessages(this.system.dynamodb, this.system.tables.messages, id);
  }

  /** Waits until something newer than what is stored now is stored. */
  async flows(id: string): Promise<void> {
    const before = (await this.stored(id)).at(-1)?.seq ?? 0;
    await waitFor(
      `new messages of ${id}`,
      10_000,
      async () => ((await this.stored(id)).at(-1)?.seq ?? 0) > before || null,
    );
  }

  /** Stops the source and waits until each number it gave out is stored. @returns all messages, by id */
  async complete(ids: string[]): Promise<Map<string, StoredMessage[]>> {
    await Promise.all(ids.map((id) => this.source.control({ id, rate: 0 })));
    const all = new Map<string, StoredMessage[]>();
    for (const id of ids) {
      const { seqNow } = await this.seen(id);
      const messages = await waitFor(`all ${seqNow} messages of ${id}`, 15_000, async () => {
        const stored = await this.stored(id);
        return stored.length >= seqNow && stored.at(-1)?.seq === seqNow ? stored : null;
      });
      const holes = missing(messages);
      if (holes.length > 0) throw new Error(`${id} misses ${holes.join(', ')}`);
      all.set(id, messages);
    }
    return all;
  }

  async task(pid: number, withinMs = 20_000): Promise<StoppedTask> {
    return waitFor(`the end of ${pid}`, withinMs, async () => this.tasks.find((task) => task.pid === pid) ?? null);
  }

  async addWorker(env: Record<string, string> = {}) {
    const worker = await this.system.addWorker(env);
    this.#notePids();
    return worker;
  }

  /** Ends everything. @throws when a process is left */
  async stop(): Promise<void> {
    this.#over.abort();
    this.#notePids();
    await Promise.all(this.#sweeping);
    await this.system.stop();
    const left = await waitUntilGone([...this.#pids]);
    if (left.length > 0) throw new Error(`processes are left: ${left.join(', ')}`);
  }

  #notePids(): void {
    for (const pid of [...Object.values(this.system.pids), ...this.system.workers.map((worker) => worker.pid)]) {
      if (pid !== null) this.#pids.add(pid);
    }
  }
}

async function waitUntilGone(pids: number[]): Promise<number[]> {
  const deadlineMs = Date.now() + 2_000;
  for (;;) {
    const left = pids.filter(isRunning);
    if (left.length === 0 || Date.now() > deadlineMs) return left;
    await sleep(50);
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
