import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { gapsSince, percentile } from '../../local/measure.ts';
import { taskStoppedEvent } from '../../local/task-event.ts';
import { type Rig, startRig } from '../support/e2e.ts';

let rig: Rig;
const ids = Array.from({ length: 60 }, (_, index) => `c-${index + 1}`);

beforeAll(async () => {
  // Longer than anything here takes: what comes back sooner came back because the end was reported.
  const env = { WORKER_LEASE: 'on', LEASE_SECONDS: '60', HEARTBEAT_EVERY: '5' };
  rig = await startRig('crash-reported', { workers: 3, api: true, env });
}, 90_000);
afterAll(() => rig?.stop(), 60_000);

test('a worker that is killed, its end reported: all that it held is back within seconds, with nothing missing', async () => {
  await rig.startAll(ids, 2);
  const { worker, held: concerned } = await rig.holder(ids);
  const { workerId, pid } = worker;
  const killedAtMs = Date.now();
  worker.kill('SIGKILL');
  await rig.task(pid ?? 0);
  await rig.reopened(concerned, killedAtMs);
  await rig.allOpen(ids);
  const gaps = gapsSince((await rig.source.report()).connections, killedAtMs);
  expect(gaps).toHaveLength(concerned.length);
  expect(percentile(gaps, 1)).toBeLessThan(8_000);
  expect(await rig.workerRow(workerId ?? '')).toMatchObject({ expiredAtMs: expect.any(Number) });
  expect(await rig.ownedBy(workerId, ids)).toEqual([]);
  for (const id of concerned) expect(await rig.seen(id)).toMatchObject({ maxOpen: 1, dials: 2 });
}, 60_000);

test('the same event again, late, and one about a task that runs: nothing happens', async () => {
  const owners = async () => (await Promise.all(ids.map((id) => rig.item(id)))).map(({ leaseOwner }) => leaseOwner);
  const before = await owners();
  const [stopped] = rig.tasks;
  if (!stopped) throw new Error('a task has ended');
  const event = taskStoppedEvent(stopped);
  expect(await rig.system.invoke('reconcile', event)).toMatchObject({ expired: [], left: 0, sent: 0 });
  const [running] = (await rig.workerRows()).filter(({ expiredAtMs }) => expiredAtMs === undefined);
  const taskArn = running?.taskArn ?? '';
  const detail = { ...event.detail, taskArn, lastStatus: 'RUNNING', version: 3 };
  expect(await rig.system.invoke('reconcile', { ...event, detail })).toMatchObject({ ignored: 'it is RUNNING' });
  expect(await rig.workerRow(running?.workerId ?? '')).toMatchObject({ expiredAtMs: undefined });
  await rig.complete(ids);
  expect(await owners()).toEqual(before);
}, 60_000);
