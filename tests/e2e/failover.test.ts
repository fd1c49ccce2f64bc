import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { gapsSince, waitFor } from '../../local/measure.ts';
import type { WorkerProcess } from '../../local/worker-process.ts';
import { startDynamoProxy } from '../support/dynamo-proxy.ts';
import { leaseMs, type Rig, startRig } from '../support/e2e.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('failover', { workers: 3 });
  rig.keepSweeping();
}, 90_000);
afterAll(() => rig?.stop(), 60_000);

const ids = (name: string, count: number) => Array.from({ length: count }, (_, index) => `${name}-${index + 1}`);

const running = (worker: WorkerProcess): { pid: number; workerId: string } => {
  const { pid, workerId } = worker;
  if (pid === null || workerId === null) throw new Error('this worker doesn’t run');
  return { pid, workerId };
};

/** Which of these the worker owns, by their items. */
const ownedBy = async (workerId: string, of: string[]): Promise<string[]> => {
  const items = await Promise.all(of.map((id) => rig.item(id)));
  return of.filter((_, index) => items[index]?.leaseOwner === workerId);
};

/** The worker that owns the first of these, and whatever else of them. Which one that is, nobody decides. */
const ownerOf = async (of: string[]) => {
  const { leaseOwner = '' } = await rig.item(of[0] ?? '');
  const worker = rig.system.workers.find(({ workerId }) => workerId === leaseOwner);
  if (!worker) throw new Error(`no worker is ${leaseOwner}`);
  return { worker, its: await ownedBy(leaseOwner, of), ...running(worker) };
};

const events = async (worker: WorkerProcess, pid: number): Promise<string[]> => {
  const lines = (await readFile(worker.logFile, 'utf8')).split('\n');
  return lines.flatMap((line) => {
    if (!line.startsWith('{')) return [];
    const entry = JSON.parse(line) as { event: string; pid?: number };
    return entry.pid === undefined || entry.pid === pid ? [entry.event] : [];
  });
};

test('SIGSTOP beyond the lease: others take over; on waking it closes its sockets, stores nothing, and works on', async () => {
  const all = ids('frozen', 12);
  await rig.startAll(all, 20);
  const { worker: frozen, pid, workerId, its } = await ownerOf(all);
  const frozenAtMs = Date.now();
  frozen.kill('SIGSTOP');

  await waitFor('others to own them', leaseMs + 10_000, async () =>
    (await ownedBy(workerId, its)).length === 0 ? true : null,
  );
  for (const id of its) await rig.seenBecomes(id, 'has a second socket', ({ open }) => open === 2);
  await Promise.all(its.map((id) => rig.flows(id)));
  const storedByIt = async () => {
    const stored = await Promise.all(its.map((id) => rig.stored(id)));
    return stored.map((messages) => messages.filter((message) => message.workerId === workerId).map(({ seq }) => seq));
  };
  const before = await storedByIt();

  frozen.kill('SIGCONT');
  for (const id of its) await rig.seenBecomes(id, 'has one socket', ({ open }) => open === 1, 3_000);
  await Promise.all(its.map((id) => rig.flows(id)));
  expect(await storedByIt()).toEqual(before);

  const messages = await rig.complete(all);
  for (const id of its) {
    const late = messages
      .get(id)
      ?.filter((message) => message.workerId === workerId && message.timestampMs > frozenAtMs + 1_000);
    expect(late).toEqual([]);
  }
  // The same process, under a fresh id: the old one never comes back.
  await waitFor('a fresh id', 5_000, async () => (frozen.workerId === workerId ? null : true));
  expect(frozen.pid).toBe(pid);
}, 60_000);

test('SIGTERM: handed over at once, stored to the last message that was read, exit code 0', async () => {
  const all = ids('handed-over', 12);
  await rig.startAll(all, 100);
  const { worker: leaving, pid, workerId, its } = await ownerOf(all);
  const atMs = Date.now();
  leaving.kill('SIGTERM');

  const task = await rig.task(pid);
  expect([task.exitCode, task.signal]).toEqual([0, null]);
  // Long before any lease could have run out.
  expect(task.stoppedAtMs - atMs).toBeLessThan(leaseMs / 2);
  await rig.allOpen(all);
  const reports = await Promise.all(its.map((id) => rig.seen(id)));
  expect(Math.max(...gapsSince(reports, atMs))).toBeLessThan(leaseMs / 2);
  for (const { disconnects, maxOpen } of reports) {
    expect([maxOpen, disconnects.filter(({ at }) => at >= atMs).map(({ code }) => code)]).toEqual([1, [1000]]);
  }
  const told = await events(leaving, pid);
  // It may be the one that was frozen, and have dropped messages then.
  expect(told.slice(told.lastIndexOf('worker.draining'))).not.toContain('messages.discarded');
  await rig.complete(all);
  expect(await ownedBy(workerId, [...all, ...ids('frozen', 12)])).toEqual([]);
}, 60_000);

test('SIGKILL: taken over when the lease has run out, with no number missing and none sent twice at the same time', async () => {
  const all = ids('killed', 12);
  await rig.startAll(all, 20);
  const { worker: dying, its } = await ownerOf(all);
  const atMs = Date.now();
  dying.kill('SIGKILL');

  await rig.seenBecomes(its[0] ?? '', 'is cut', ({ open }) => open === 0);
  await rig.allOpen(all, leaseMs + 10_000);
  const reports = await Promise.all(its.map((id) => rig.seen(id)));
  expect(reports.map(({ maxOpen }) => maxOpen)).toEqual(its.map(() => 1));
  expect(Math.max(...gapsSince(reports, atMs))).toBeLessThan(leaseMs + 4_000);
  await rig.complete(all);
}, 60_000);

test('SIGTERM while claims are in flight: nothing stays owned by who is gone, all is open', async () => {
  const all = ids('in-flight', 40);
  const proxy = await startDynamoProxy({ target: rig.system.dynamodbUrl });
  const leaving = await rig.addWorker({ AWS_ENDPOINT_URL_DYNAMODB: proxy.url });
  const { pid, workerId } = running(leaving);
  proxy.control({ delayMs: 300, operations: ['UpdateItem'] });
  proxy.resetCounts();
  const starting = Promise.all(all.map((id) => rig.start(id)));
  await waitFor('its claims', 10_000, async () => (proxy.counts().byOperation['UpdateItem'] ?? 0) >= 5 || null);
  leaving.kill('SIGTERM');
  await starting;
  const task = await rig.task(pid);
  expect([task.exitCode, task.signal]).toEqual([0, null]);
  await rig.allOpen(all, leaseMs + 15_000);
  expect(await ownedBy(workerId, all)).toEqual([]);
  for (const id of all) expect((await rig.seen(id)).maxOpen).toBe(1);
  await proxy.close();
}, 60_000);

test('SIGINT and SIGTERM twice are no different', async () => {
  const last = await rig.addWorker();
  const { pid } = running(last);
  last.kill('SIGINT');
  last.kill('SIGTERM');
  last.kill('SIGTERM');
  expect(await rig.task(pid)).toMatchObject({ exitCode: 0, signal: null });
}, 30_000);
