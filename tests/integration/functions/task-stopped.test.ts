import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { type TaskStoppedParts, taskStateChange, taskStopped } from '../../../functions/task-stopped.ts';
import { taskStoppedEvent } from '../../../local/task-event.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { context, setEnvironment } from '../../support/lambda.ts';
import { type Orphanage, orphanage } from '../../support/orphanage.ts';

let aws: TestAws;
let home: Orphanage;

beforeAll(async () => {
  aws = await startAws({ namespace: 'fn-task-stopped' });
  home = orphanage(aws);
});

afterAll(() => aws?.stop());
beforeEach(() => home.empty());

const arnOf = (task: string) => `arn:aws:ecs:us-east-1:000000000000:task/fleet/${task}`;
const task = { workerId: null, pid: 1, exitCode: null, signal: 'SIGKILL', startedAtMs: 0, stoppedAtMs: 0 } as const;
/** As EventBridge delivers it. */
const eventOf = (name: string) => taskStoppedEvent({ ...task, taskArn: arnOf(name) });

/** A worker of this task, alive by its own lease, that owns these connections. */
async function worker(workerId: string, taskName: string, ids: string[] = []): Promise<void> {
  const report = { held: ids.length, capacity: 9, draining: false, revision: 'r1', startedAtMs: 0 };
  await home.workers.register({
    ...report,
    workerId,
    taskArn: arnOf(taskName),
    leaseExpiresAtMs: Date.now() + 20_000,
  });
  await Promise.all(ids.map((id) => home.start(id)));
  await Promise.all(ids.map((id) => home.claim(id, workerId)));
}

/** @param status what ECS says of each task; undefined: there is no ECS to ask */
function hear(
  name: string,
  change: { lastStatus?: string; status?: string; expire?: TaskStoppedParts['workers']['expire'] } = {},
) {
  const { parts, published } = home.parts({ workerLease: true });
  const statusOf = change.status === undefined ? undefined : jest.fn(async (_arn: string) => change.status ?? '');
  const event = taskStateChange.parse(eventOf(name));
  const detail = { ...event.detail, ...(change.lastStatus === undefined ? {} : { lastStatus: change.lastStatus }) };
  const heard = taskStopped({ ...parts, statusOf }, { ...event, detail });
  return { heard, statusOf, published };
}

const tombstone = async (id: string) => (await home.workers.get(id))?.expiredAtMs;

describe('a task that has ended', () => {
  test('its worker is dead at once, and all that it owned is woken up', async () => {
    await worker('a-worker', 'a', ['a-1', 'a-2']);
    await worker('a-other', 'a-other', ['a-3']);
    const { heard, published } = hear('a', { status: 'STOPPED' });
    expect(await heard).toMatchObject({ expired: ['a-worker'], left: 2, sent: 2 });
    expect(await home.wakeUps()).toEqual(['a-1', 'a-2']);
    expect([await tombstone('a-worker'), await tombstone('a-other')]).toEqual([expect.any(Number), undefined]);
    expect(published).toEqual([{ WorkersExpired: 1, WakeUpsSent: 2 }]);
  });

  test('heard of twice, and late: buried once; what is still left is woken up again', async () => {
    await worker('b-worker', 'b', ['b-1']);
    await hear('b').heard;
    const buriedAtMs = await tombstone('b-worker');
    await home.wakeUps();
    expect(await hear('b').heard).toMatchObject({ expired: [], left: 1, sent: 1 });
    expect(await tombstone('b-worker')).toBe(buriedAtMs);
    await home.wakeUps();
    const claimed = await home.connections.get('CONN#b-1');
    const dead = { owner: 'b-worker', epoch: claimed?.leaseEpoch ?? 0 };
    await home.leases.acquire('CONN#b-1', 'b-next', Date.now() + 60_000, Date.now(), dead);
    expect(await hear('b').heard).toMatchObject({ expired: [], left: 0, sent: 0 });
    expect(await home.connections.get('CONN#b-1')).toMatchObject({ leaseOwner: 'b-next' });
  });

  test('every id that a process of it has had is dead with it', async () => {
    await worker('c-first', 'c', ['c-1']);
    await worker('c-second', 'c', ['c-2']);
    await home.workers.expire('c-first', undefined, Date.now());
    await worker('c-third', 'c', ['c-3']);
    expect(await hear('c').heard).toMatchObject({ expired: expect.arrayContaining(['c-second', 'c-third']), left: 3 });
    expect(await home.wakeUps()).toEqual(['c-1', 'c-2', 'c-3']);
  });

  test('nobody knows a worker of it: nothing to do', async () => {
    expect(await hear('d').heard).toMatchObject({ expired: [], left: 0, sent: 0 });
  });

  test('the two at once: one tombstone', async () => {
    await worker('e-worker', 'e', ['e-1']);
    const outcomes = await Promise.all([hear('e').heard, hear('e').heard]);
    expect(outcomes.flatMap((outcome) => ('expired' in outcome ? (outcome.expired ?? []) : []))).toEqual(['e-worker']);
  });
});

describe('a task that runs', () => {
  test.each(['PROVISIONING', 'RUNNING', 'DEACTIVATING', 'STOPPING'])('%s is ignored', async (lastStatus) => {
    await worker(`f-${lastStatus}`, `f-${lastStatus}`, [`f-${lastStatus}`]);
    const { heard, statusOf } = hear(`f-${lastStatus}`, { lastStatus, status: 'STOPPED' });
    expect(await heard).toMatchObject({ ignored: `it is ${lastStatus}` });
    expect(statusOf).not.toHaveBeenCalled();
    expect(await tombstone(`f-${lastStatus}`)).toBeUndefined();
  });

  test.each(['RUNNING', 'UNKNOWN'])('an event says that it stopped, and ECS says %s: not expired', async (status) => {
    await worker(`g-${status}`, `g-${status}`, [`g-${status}`]);
    const { heard, statusOf } = hear(`g-${status}`, { status });
    expect(await heard).toMatchObject({ ignored: `ECS says that it is ${status}` });
    expect(statusOf).toHaveBeenCalledWith(arnOf(`g-${status}`));
    expect([await tombstone(`g-${status}`), await home.wakeUps()]).toEqual([undefined, []]);
  });

  test('ECS doesn’t answer: a failed call, which Lambda makes again', async () => {
    await worker('h-worker', 'h');
    const { parts } = home.parts();
    const statusOf = () => Promise.reject(new Error('away'));
    await expect(taskStopped({ ...parts, statusOf }, taskStateChange.parse(eventOf('h')))).rejects.toThrow('away');
    expect(await tombstone('h-worker')).toBeUndefined();
  });
});

test('as Lambda calls it', async () => {
  setEnvironment(aws);
  const { handler } = await import('../../../functions/reconcile.ts');
  await worker('i-worker', 'i', ['i-1']);
  expect(await handler(eventOf('i'), context())).toMatchObject({ taskArn: arnOf('i'), expired: ['i-worker'], sent: 1 });
  expect(await home.wakeUps()).toEqual(['i-1']);
});
