import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { LeasesTable, Predecessor } from '../../../shared/tables/leases.ts';
import { claim } from '../../../worker/claim.ts';
import type { Context } from '../../../worker/context.ts';
import { Holdings } from '../../../worker/holdings.ts';
import { Tombstones } from '../../../worker/tombstones.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { wishes } from '../../support/wishes.ts';
import { workerOn } from '../../support/worker-on-aws.ts';
import { livingPresence } from '../../support/worker-parts.ts';

let aws: TestAws;
beforeAll(async () => {
  aws = await startAws({ namespace: 'worker-takeover' });
});
afterAll(() => aws?.stop());

/** A worker of which each request is written down. */
function worker(given: Parameters<typeof workerOn>[1] = { env: { WORKER_LEASE: 'on' } }) {
  const { context: plain, ...made } = workerOn(aws, given);
  const requests: string[] = [];
  const acquire: LeasesTable['acquire'] = async (...request) => {
    const outcome = await plain.leases.acquire(...request);
    requests.push(`acquire${request[4] ? ' naming the dead' : ''}: ${outcome === 'refused' ? 'refused' : 'won'}`);
    return outcome;
  };
  const get = (what: 'connections' | 'workers') => (key: string) => {
    requests.push(`get from ${what}`);
    return plain[what].get(key);
  };
  const workers = { ...plain.workers, get: get('workers') as Context['workers']['get'] };
  const connections = { ...plain.connections, get: get('connections') as Context['connections']['get'] };
  const tombstones = new Tombstones(workers);
  const context = { ...plain, workers, connections, tombstones, leases: { ...plain.leases, acquire } };
  return { ...made, ...wishes(plain), context, requests };
}

const hourMs = 3_600_000;
const row = { held: 0, capacity: 1, draining: false, revision: 'r1', taskArn: undefined, startedAtMs: 0 };

/** A connection of a worker whose own lease has `forMs` to run, or that is dead. Its lease on the connection runs on. */
async function left(
  id: string,
  owner: string,
  { dead }: { dead: boolean },
): Promise<{ pk: string; after: Predecessor }> {
  const { context, start } = worker();
  const pk = await start(id);
  await context.workers.register({ ...row, workerId: owner, leaseExpiresAtMs: Date.now() + 20_000 });
  const owned = await context.leases.acquire(pk, owner, Date.now() + hourMs, Date.now());
  if (owned === 'refused') throw new Error('it was not free');
  if (dead) await context.workers.expire(owner, undefined, Date.now());
  return { pk, after: { owner, epoch: owned.leaseEpoch } };
}

const epochOf = (outcome: Awaited<ReturnType<typeof claim>>): number | undefined => {
  if (!outcome.won) return undefined;
  outcome.lease.close();
  return outcome.lease.claim.epoch;
};

describe('what a dead worker left', () => {
  test('is taken in one write when the hint names it, once its tombstone was read', async () => {
    const first = await left('hinted-1', 'dead-hinted', { dead: true });
    const second = await left('hinted-2', 'dead-hinted', { dead: true });
    const { context, requests } = worker();
    expect(epochOf(await claim(context, first.pk, first.after))).toBe(first.after.epoch + 1);
    expect(requests).toEqual(['get from workers', 'acquire naming the dead: won']);
    requests.length = 0;
    expect(epochOf(await claim(context, second.pk, second.after))).toBe(second.after.epoch + 1);
    expect(requests).toEqual(['acquire naming the dead: won']);
  });

  test('is found without a hint: a refused write, the item, the tombstone, the takeover', async () => {
    const { pk, after } = await left('unhinted', 'dead-unhinted', { dead: true });
    const { context, requests, item } = worker();
    expect(epochOf(await claim(context, pk))).toBe(after.epoch + 1);
    expect(requests).toEqual([
      'acquire: refused',
      'get from connections',
      'get from workers',
      'acquire naming the dead: won',
    ]);
    expect((await item('unhinted')).leaseOwner).toBe(context.presence.id);
  });

  test('is won by one of many', async () => {
    const { pk, after } = await left('rivals', 'dead-rivals', { dead: true });
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => claim(worker().context, pk, after)));
    expect(outcomes.map(epochOf).filter((epoch) => epoch !== undefined)).toEqual([after.epoch + 1]);
  });

  test('resists the dead one: nothing that it sent before is applied any more', async () => {
    const { pk, after } = await left('late-writes', 'dead-late', { dead: true });
    const { context, item } = worker();
    epochOf(await claim(context, pk, after));
    const before = await item('late-writes');
    const dead = { pk, ...after };
    const status = { status: 'OPEN' as const, attempts: 0 };
    expect(await context.leases.renew(dead, Date.now() + 9 * hourMs, '9', Date.now())).toBe('refused');
    expect(await context.leases.setStatus(dead, status, Date.now())).toBe('refused');
    expect(await context.leases.release(dead, { lastSeq: '9', status }, Date.now())).toBe('refused');
    expect(await item('late-writes')).toEqual(before);
  });
});

describe('a hint that isn’t true', () => {
  test.each([
    ['names a worker that lives', true],
    ['names a worker that nobody knows', false],
  ])('%s: not believed', async (what, known) => {
    const id = what.replaceAll(' ', '-');
    const { pk, after } = await left(id, `alive-${known}`, { dead: false });
    const { context, item, requests } = worker();
    const owner = known ? after.owner : 'nobody';
    expect(await claim(context, pk, { ...after, owner })).toEqual({ won: false, why: 'held', owner: after.owner });
    expect(requests).not.toContain('acquire naming the dead: refused');
    expect((await item(id)).leaseEpoch).toBe(after.epoch);
  });

  test('is about an epoch that is over: what a living worker has since taken stays its own', async () => {
    const { pk, after } = await left('moved-on', 'dead-moved', { dead: true });
    const winner = worker();
    expect(epochOf(await claim(winner.context, pk, after))).toBe(after.epoch + 1);
    const { context, item } = worker();
    expect(await claim(context, pk, after)).toEqual({ won: false, why: 'held', owner: winner.context.presence.id });
    expect(await item('moved-on')).toMatchObject({ leaseEpoch: after.epoch + 1 });
  });

  test('is about another dead worker: whose it was last is what counts', async () => {
    const { pk, after } = await left('two-dead', 'dead-second', { dead: true });
    const { context } = worker();
    await context.workers.expire('dead-first', undefined, Date.now());
    expect(epochOf(await claim(context, pk, { owner: 'dead-first', epoch: after.epoch }))).toBe(after.epoch + 1);
  });

  test('names this very worker: it is not dead to itself', async () => {
    const { presence } = livingPresence('self');
    const { context, start, requests } = worker({ env: { WORKER_LEASE: 'on' }, presence });
    const pk = await start('self');
    const after = { owner: 'self', epoch: 1 };
    epochOf(await claim(context, pk, after));
    expect(requests).toEqual(['acquire: won']);
  });
});

test('a row that is missing proves nothing: its connections stay owned', async () => {
  const { context, start } = worker();
  const pk = await start('rowless');
  await context.leases.acquire(pk, 'rowless-owner', Date.now() + hourMs, Date.now());
  expect(await claim(context, pk)).toEqual({ won: false, why: 'held', owner: 'rowless-owner' });
});

test('a tombstone that can’t be read leaves it undecided', async () => {
  const { pk, after } = await left('unread', 'dead-unread', { dead: true });
  const { context, requests } = worker();
  const tombstones = { isDead: () => Promise.reject(new Error('away')) } as unknown as Context['tombstones'];
  await expect(claim({ ...context, tombstones }, pk, after)).rejects.toThrow('away');
  expect(requests.filter((request) => request.endsWith('won'))).toEqual([]);
});

test('without the worker lease nobody is taken from before the lease on the connection is over', async () => {
  const { pk, after } = await left('published', 'dead-published', { dead: true });
  const { context } = worker({ env: { WORKER_LEASE: 'off' } });
  expect(await claim(context, pk, after)).toEqual({ won: false, why: 'held', owner: 'dead-published' });
});

describe('a worker that is about to lose its own lease', () => {
  test('claims nothing', async () => {
    const { presence, fence } = livingPresence('about-to');
    const { context, start, requests } = worker({ env: { WORKER_LEASE: 'on' }, presence });
    const pk = await start('not-now');
    fence();
    expect(await claim(context, pk)).toEqual({ won: false, why: 'late' });
    expect(requests).toEqual([]);
  });

  test('and lost it while the answer was on its way: won by the table, and not held', async () => {
    const { presence, fence } = livingPresence('lost-meanwhile');
    const { context, start, item } = worker({ env: { WORKER_LEASE: 'on' }, presence });
    const pk = await start('lost-meanwhile');
    const leases: LeasesTable = {
      ...context.leases,
      acquire: async (...request) => {
        const outcome = await context.leases.acquire(...request);
        fence();
        return outcome;
      },
    };
    expect(await claim({ ...context, leases }, pk)).toEqual({ won: false, why: 'late' });
    expect((await item('lost-meanwhile')).leaseOwner).toBe('lost-meanwhile');
  });

  test('its hint isn’t forgotten: somebody has to look again', async () => {
    const { presence, fence } = livingPresence('look-again');
    const { context, start } = worker({ env: { WORKER_LEASE: 'on' }, presence });
    const pk = await start('look-again');
    const leases: LeasesTable = {
      ...context.leases,
      acquire: async (...request) => {
        const outcome = await context.leases.acquire(...request);
        fence();
        return outcome;
      },
    };
    const holdings = new Holdings({ ...context, leases });
    expect([await holdings.take(pk), holdings.held]).toEqual(['unanswered', 0]);
  });
});
