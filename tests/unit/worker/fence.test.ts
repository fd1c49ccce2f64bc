import { describe, expect, jest, test } from '@jest/globals';
import type { Claim } from '../../../shared/tables/leases.ts';
import { stayPresent } from '../../../worker/fence.ts';
import type { Holdings } from '../../../worker/holdings.ts';
import { Presence } from '../../../worker/presence.ts';
import { settled, VirtualClock } from '../../support/virtual-clock.ts';
import { configOf, contextOf } from '../../support/worker-parts.ts';
import { fakeWorkers } from '../../support/workers-table.ts';

const heartbeatMs = 5_000;
/** Four requests: by then everything that was on its way has been answered or given up. */
const endedWithinMs = 4 * 3_000;

/** A worker that holds one connection. What happens to it, and to the table of workers, is written down in order. */
async function holder() {
  const clock = new VirtualClock();
  const table = fakeWorkers();
  let ids = 0;
  const { context } = contextOf({ clock, workers: table.workers });
  const newId = () => `w-${++ids}`;
  const presence = new Presence({ ...context, config: configOf({ WORKER_LEASE: 'on' }), newId });
  const happened: string[] = [];
  for (const operation of ['register', 'expire'] as const) {
    const write = table.workers[operation] as (...given: unknown[]) => Promise<'written' | 'refused'>;
    const told = (...given: unknown[]) => {
      const [first] = given as [string | { workerId: string }];
      happened.push(`${operation} ${typeof first === 'string' ? first : first.workerId}`);
      return write(...given);
    };
    Object.assign(table.workers, { [operation]: told });
  }
  const claim: Claim = { pk: 'CONN#a', owner: 'w-1', epoch: 7 };
  const emptied = Promise.withResolvers<void>();
  const taking = Promise.withResolvers<'settled'>();
  let fenced = false;
  const holdings = {
    held: 1,
    draining: false,
    fence: () => {
      if (!fenced) happened.push('fence');
      fenced = true;
      return [claim];
    },
    emptied: () => emptied.promise.then(() => void happened.push('emptied')),
    reopened: () => {
      fenced = false;
      happened.push('reopened');
    },
    take: (pk: string, after: Claim) => {
      happened.push(`${presence.id} takes ${pk} after ${after.owner} at ${after.epoch}`);
      return taking.promise;
    },
  } as unknown as Holdings;
  const until = new AbortController();
  const load = () => ({ held: 1, draining: false });
  await presence.register(load, until.signal);
  happened.length = 0;
  const ended = jest.fn();
  void stayPresent({ ...context, presence }, holdings, until.signal).then(ended);
  return { clock, presence, ...table, happened, emptied, taking, until, ended };
}

const renewed = ({ sent }: { sent: { operation: string; workerId: string }[] }, id: string) =>
  sent.filter(({ operation, workerId }) => operation === 'renew' && workerId === id).length;

describe('a worker whose lease is lost', () => {
  test('lets go of everything, buries its id, registers under a fresh one, and takes again what it held', async () => {
    const { clock, presence, workers, happened, emptied } = await holder();
    await workers.expire('w-1', undefined, clock.now());
    happened.length = 0;
    await clock.advance(heartbeatMs);
    expect(happened).toEqual(['fence']);
    emptied.resolve();
    await settled();
    expect(happened).toEqual([
      'fence',
      'emptied',
      'expire w-1',
      'register w-2',
      'reopened',
      'w-2 takes CONN#a after w-1 at 7',
    ]);
    expect([presence.valid('w-1'), presence.valid('w-2')]).toEqual([false, true]);
  });

  test('lets go at the very moment at which the lease is over, whoever notices', async () => {
    const { clock, presence, happened } = await holder();
    clock.freeze(45_000);
    expect(presence.valid('w-1')).toBe(false);
    expect(happened).toEqual(['fence']);
  });

  test('has no fresh id before the store has answered that the old one is dead', async () => {
    const { clock, presence, fates, rows, happened, emptied } = await holder();
    fates.now = 'unreachable';
    emptied.resolve();
    await clock.advance(60_000);
    expect([presence.id, rows.get('w-1')?.expiredAtMs]).toEqual(['w-1', undefined]);
    expect(happened).not.toContain('register w-2');
    fates.now = 'answered';
    await clock.advance(1_000);
    expect([presence.id, rows.get('w-1')?.expiredAtMs === undefined]).toEqual(['w-2', false]);
    expect(happened.at(-1)).toBe('w-2 takes CONN#a after w-1 at 7');
  });

  test('goes on being fenced for as long as something isn’t ended, and then must not go on at all', async () => {
    const { clock, presence, happened, ended } = await holder();
    clock.freeze(45_000);
    await clock.advance(0);
    await clock.advance(endedWithinMs - 1);
    expect(ended).not.toHaveBeenCalled();
    await clock.advance(1);
    expect(ended.mock.calls).toEqual([[false]]);
    // What isn't ended may still write: nobody may be told that this id is dead.
    expect([presence.id, happened]).toEqual(['w-1', ['fence']]);
  });

  test('renews its new lease while it takes again what it held', async () => {
    const made = await holder();
    made.clock.freeze(45_000);
    made.emptied.resolve();
    await made.clock.advance(0);
    expect(made.happened.at(-1)).toBe('w-2 takes CONN#a after w-1 at 7');
    await made.clock.advance(60_000);
    expect([renewed(made, 'w-2'), made.presence.valid('w-2')]).toEqual([12, true]);
  });

  test('can lose the new one too, also while it takes again what it held', async () => {
    const { clock, presence, emptied, happened } = await holder();
    clock.freeze(45_000);
    emptied.resolve();
    await clock.advance(0);
    clock.freeze(45_000);
    happened.length = 0;
    expect(presence.valid('w-2')).toBe(false);
    expect(happened).toEqual(['fence']);
    await clock.advance(1_000);
    expect([presence.id, presence.valid('w-3')]).toEqual(['w-3', true]);
  });
});

describe('told to stop', () => {
  test('ends, and leaves the id alone', async () => {
    const { clock, until, ended, happened } = await holder();
    await clock.advance(heartbeatMs);
    until.abort();
    await settled();
    expect([ended.mock.calls, happened]).toEqual([[[true]], []]);
  });

  test('while the store doesn’t answer the tombstone: ends too', async () => {
    const { clock, until, ended, fates, emptied } = await holder();
    fates.now = 'unreachable';
    emptied.resolve();
    await clock.advance(30_000);
    expect(ended).not.toHaveBeenCalled();
    until.abort();
    await settled();
    expect(ended.mock.calls).toEqual([[true]]);
  });

  test('while it takes again what it held: waits for that', async () => {
    const { clock, until, ended, emptied, taking } = await holder();
    clock.freeze(45_000);
    emptied.resolve();
    await clock.advance(0);
    until.abort();
    await settled();
    expect(ended).not.toHaveBeenCalled();
    taking.resolve('settled');
    await settled();
    expect(ended.mock.calls).toEqual([[true]]);
  });
});
