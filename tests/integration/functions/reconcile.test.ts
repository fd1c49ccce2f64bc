import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { handler } from '../../../functions/reconcile.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { context, scheduledEvent, setEnvironment } from '../../support/lambda.ts';
import { type Orphanage, orphanage } from '../../support/orphanage.ts';

let aws: TestAws;
let home: Orphanage;

beforeAll(async () => {
  aws = await startAws({ namespace: 'fn-reconcile' });
  setEnvironment(aws, { RECONCILE_EVERY: '0.9', SWEEP_EVERY: '0.3' });
  home = orphanage(aws);
});

afterAll(() => aws?.stop());
beforeEach(() => home.empty());

describe('as Lambda calls it', () => {
  const invoke = (event: unknown) => handler(event, context(75_000));

  test('by schedule, several times within its minute', async () => {
    await home.start('k-1');
    expect(await invoke(scheduledEvent)).toEqual({ sweeps: 3, failed: 0 });
    expect(await home.wakeUps()).toEqual(['k-1']);
  });

  test('two at once send a wake-up too many at worst', async () => {
    await Promise.all(['l-1', 'l-2'].map((id) => home.start(id)));
    await Promise.all([invoke({}), invoke({})]);
    const woken = await home.wakeUps();
    expect([...new Set(woken)]).toEqual(['l-1', 'l-2']);
    expect(woken.length).toBeLessThanOrEqual(4);
  });

  test('by hand: one sweep, with or without doing it', async () => {
    await home.start('m-1');
    expect(await invoke({ dryRun: true })).toMatchObject({ dryRun: true, orphans: 1, sent: 0, connectionIds: ['m-1'] });
    expect(await invoke(null)).toMatchObject({ dryRun: false, orphans: 1, sent: 1 });
    expect(await home.wakeUps()).toEqual(['m-1']);
  });

  test('by hand: one connection, and why', async () => {
    await Promise.all(['free', 'dead', 'live', 'parked', 'stopped'].map((id) => home.start(`n-${id}`)));
    await home.claim('n-dead', 'worker-1', -10);
    await home.claim('n-live', 'worker-2');
    await home.park('n-parked', 60_000);
    await home.stop('n-stopped');
    const look = (id: string, more = {}) => invoke({ connectionId: `n-${id}`, ...more });
    expect(await look('free', { dryRun: true })).toMatchObject({ state: 'orphan', woken: false });
    expect(await home.wakeUps()).toEqual([]);
    expect(await look('free')).toMatchObject({ state: 'orphan', woken: true, why: 'no worker has taken it' });
    expect(await look('dead')).toMatchObject({
      state: 'orphan',
      woken: true,
      why: expect.stringContaining('worker-1'),
    });
    expect(await look('live')).toMatchObject({
      state: 'owned',
      woken: false,
      why: expect.stringContaining('worker-2'),
    });
    expect(await look('parked')).toMatchObject({ state: 'waiting', woken: false });
    expect(await look('stopped')).toMatchObject({ state: 'stopped', woken: false });
    expect(await look('unknown')).toMatchObject({ state: 'unknown', woken: false });
    expect(await home.wakeUps()).toEqual(['n-dead', 'n-free']);
  });

  test('by hand: what one worker left behind', async () => {
    await Promise.all(['o-1', 'o-2', 'o-3', 'o-4'].map((id) => home.start(id)));
    await home.claim('o-1', 'worker-left', -10);
    await home.claim('o-2', 'worker-left');
    await home.claim('o-3', 'worker-left', -10);
    await home.stop('o-3');
    const expected = { workerId: 'worker-left', owned: 3, stillLeased: 1, orphans: 1, connectionIds: ['o-1'] };
    expect(await invoke({ workerId: 'worker-left', dryRun: true })).toMatchObject({ ...expected, sent: 0 });
    expect(await invoke({ workerId: 'worker-left' })).toMatchObject({ ...expected, sent: 1 });
    expect(await home.wakeUps()).toEqual(['o-1']);
  });

  test.each<[unknown, RegExp]>([
    [{ dryrun: true }, /dryrun is not a field/],
    [{ dryRun: 'true' }, /dryRun must be a boolean, not a string/],
    [{ connectionId: 'a', workerId: 'b' }, /only one at a time/],
    ['dryRun', /must be an object/],
    [{ source: 'aws.ecs' }, /source is not a field/],
  ])('by hand: %j fails with words', async (payload, words) => {
    await expect(invoke(payload)).rejects.toThrow(words);
  });
});

test('a wrong configuration is a failed call that says what is wrong', async () => {
  const { SWEEP_EVERY: sweepEvery } = process.env;
  jest.resetModules();
  Object.assign(process.env, { SWEEP_EVERY: '90' });
  try {
    const fresh = await import('../../../functions/reconcile.ts');
    await expect(fresh.handler({}, context())).rejects.toThrow(/SWEEP_EVERY \(90\) must not/);
  } finally {
    Object.assign(process.env, { SWEEP_EVERY: sweepEvery });
  }
});
