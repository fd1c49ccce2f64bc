import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { expireOverdue, leftBy } from '../../../functions/dead-workers.ts';
import { MassGuard } from '../../../functions/mass-guard.ts';
import { type SweepParts, sweep } from '../../../functions/sweep.ts';
import { pkOf } from '../../../shared/connection.ts';
import type { ConnectionsTable } from '../../../shared/tables/connections.ts';
import type { WorkerReport } from '../../../shared/tables/workers.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { type Orphanage, orphanage } from '../../support/orphanage.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const leaseMs = 20_000;
const skewMs = 1_000;
let aws: TestAws;
let home: Orphanage;

beforeAll(async () => {
  aws = await startAws({ namespace: 'fn-dead-workers' });
  home = orphanage(aws);
});

afterAll(() => aws?.stop());
beforeEach(async () => {
  await home.empty();
  // Nobody is left from the test before who could be overdue in this one.
  for (const { workerId } of await home.workers.all()) await home.workers.expire(workerId, undefined, 0);
});

const report = { held: 1, capacity: 9, draining: false, revision: 'r1', taskArn: undefined, startedAtMs: 0 };

/** A worker whose lease ran out `overdueMs` ago by this reconciler's clock; negative: it still runs. */
const worker = (workerId: string, clock: VirtualClock, overdueMs: number) =>
  home.workers.register({ ...report, workerId, leaseExpiresAtMs: clock.now() - overdueMs });

function reconciler(change: Partial<SweepParts> = {}) {
  const clock = new VirtualClock(Date.now());
  const { parts } = home.parts({ clock, workerLease: true, guard: new MassGuard(leaseMs), ...change });
  return { clock, parts };
}

const tombstone = async (id: string) => (await home.workers.get(id))?.expiredAtMs;

describe('a worker that is overdue', () => {
  test('is expired once its lease has run out by more than clocks may differ, and not before', async () => {
    const { clock, parts } = reconciler();
    await worker('a-live', clock, -leaseMs);
    await worker('a-live-too', clock, -leaseMs);
    await worker('a-overdue', clock, skewMs);
    expect((await expireOverdue(parts, false)).expired).toEqual([]);
    expect(await tombstone('a-overdue')).toBeUndefined();
    await clock.advance(1);
    expect(await expireOverdue(parts, false)).toMatchObject({ expired: ['a-overdue'] });
    expect([await tombstone('a-overdue'), await tombstone('a-live')]).toEqual([clock.now(), undefined]);
  });

  test('but renews before the tombstone is written, stays alive', async () => {
    const { clock, parts } = reconciler();
    await worker('b-live', clock, -leaseMs);
    await worker('b-late', clock, skewMs + 1);
    const expire: SweepParts['workers']['expire'] = async (workerId, ...rest) => {
      await home.workers.renew({ ...report, workerId, leaseExpiresAtMs: clock.now() + leaseMs });
      return home.workers.expire(workerId, ...rest);
    };
    const late = { ...parts, workers: { ...parts.workers, expire } };
    const { expired, dead } = await expireOverdue(late, false);
    expect([expired, dead.map(({ workerId }) => workerId)]).not.toContainEqual(expect.stringContaining('b-late'));
    expect([expired, await tombstone('b-late')]).toEqual([[], undefined]);
  });

  test('is expired by one write, however many reconcilers find it', async () => {
    const { clock, parts } = reconciler();
    await worker('c-live', clock, -leaseMs);
    await worker('c-dead', clock, skewMs + 1);
    let writes = 0;
    const expire: SweepParts['workers']['expire'] = (...given) => {
      writes++;
      return home.workers.expire(...given);
    };
    const counted = { ...parts, workers: { ...parts.workers, expire } };
    const found = await Promise.all([expireOverdue(counted, false), expireOverdue(counted, false)]);
    expect(found.flatMap(({ expired }) => expired)).toEqual(['c-dead']);
    await expireOverdue(counted, false);
    expect(writes).toBeLessThanOrEqual(2);
  });

  test('dry: is named, and nothing is written', async () => {
    const { clock, parts } = reconciler();
    await worker('d-live', clock, -leaseMs);
    await worker('d-dead', clock, skewMs + 1);
    expect((await expireOverdue(parts, true)).expired).toEqual(['d-dead']);
    expect(await tombstone('d-dead')).toBeUndefined();
  });
});

describe('most workers overdue at once', () => {
  test('they get one more lease, and whoever renews in it lives', async () => {
    const { clock, parts } = reconciler();
    await Promise.all(['e-1', 'e-2', 'e-3'].map((id) => worker(id, clock, skewMs + 1)));
    expect((await expireOverdue(parts, false)).expired).toEqual([]);
    await clock.advance(leaseMs - 1);
    expect((await expireOverdue(parts, false)).expired).toEqual([]);
    await Promise.all(
      ['e-1', 'e-2'].map((id) =>
        home.workers.renew({ ...report, workerId: id, leaseExpiresAtMs: clock.now() + leaseMs }),
      ),
    );
    await clock.advance(1);
    expect((await expireOverdue(parts, false)).expired).toEqual(['e-3']);
    expect(await tombstone('e-1')).toBeUndefined();
  });

  test('they are expired when that lease is over too', async () => {
    const { clock, parts } = reconciler();
    await Promise.all(['f-1', 'f-2'].map((id) => worker(id, clock, skewMs + 1)));
    await expireOverdue(parts, false);
    await clock.advance(leaseMs);
    expect((await expireOverdue(parts, false)).expired.sort()).toEqual(['f-1', 'f-2']);
  });

  test('one of two isn’t most', async () => {
    const { clock, parts } = reconciler();
    await worker('g-live', clock, -leaseMs);
    await worker('g-dead', clock, skewMs + 1);
    expect((await expireOverdue(parts, false)).expired).toEqual(['g-dead']);
  });
});

describe('what dead workers left', () => {
  async function dead(id: string): Promise<WorkerReport> {
    await home.workers.expire(id, undefined, Date.now());
    const row = await home.workers.get(id);
    if (!row) throw new Error('it was just buried');
    return row;
  }

  test('is followed page by page to the end, with owner and epoch, and nothing is written', async () => {
    const ids = Array.from({ length: 25 }, (_, i) => `left-${i}`);
    await Promise.all(ids.map((id) => home.start(id)));
    const claimed = await Promise.all(ids.map((id) => home.claim(id, 'left-owner')));
    const pages: number[] = [];
    const ownedBy: ConnectionsTable['ownedBy'] = async (owner, from) => {
      const page = await home.connections.ownedBy(owner, from, 4);
      pages.push(page.rows.length);
      return page;
    };
    const { parts } = reconciler({ connections: { ...home.connections, ownedBy } });
    const { wakeUps } = await leftBy(parts, [await dead('left-owner')], false);
    const byPk = (a: { pk: string }, b: { pk: string }) => (a.pk < b.pk ? -1 : 1);
    expect(wakeUps.sort(byPk)).toEqual(
      claimed.map(({ pk, leaseEpoch }) => ({ pk, after: { owner: 'left-owner', epoch: leaseEpoch } })).sort(byPk),
    );
    expect(pages.length).toBeGreaterThan(6);
    expect(claimed[0]).toMatchObject({ ...(await home.connections.get(pkOf('left-0'))) });
  });

  test('is given back when nobody wants it any more', async () => {
    await home.start('unwanted');
    const claimed = await home.claim('unwanted', 'unwanted-owner');
    await home.stop('unwanted');
    const { parts } = reconciler();
    const row = await dead('unwanted-owner');
    expect((await leftBy(parts, [row], true)).wakeUps).toEqual([]);
    expect(await home.connections.get(pkOf('unwanted'))).toMatchObject({ leaseOwner: 'unwanted-owner' });
    expect((await leftBy(parts, [row], false)).wakeUps).toEqual([]);
    expect(await home.connections.get(pkOf('unwanted'))).toMatchObject({
      leaseOwner: undefined,
      status: 'CLOSED',
      leaseEpoch: claimed.leaseEpoch,
    });
  });

  test('and is wanted again before it is given back, is woken up', async () => {
    await home.start('rewanted');
    const claimed = await home.claim('rewanted', 'rewanted-owner');
    await home.stop('rewanted');
    const row = await dead('rewanted-owner');
    const ownedBy: ConnectionsTable['ownedBy'] = async (...query) => {
      const page = await home.connections.ownedBy(...query);
      await home.restart('rewanted');
      return page;
    };
    const { parts } = reconciler({ connections: { ...home.connections, ownedBy } });
    const { wakeUps } = await leftBy(parts, [row], false);
    expect(wakeUps.map(({ pk }) => pk)).toEqual([claimed.pk]);
  });

  test('doesn’t stand in the way when it can’t be given back now', async () => {
    await home.start('stuck');
    await home.claim('stuck', 'stuck-owner');
    await home.stop('stuck');
    await home.start('fine');
    await home.claim('fine', 'stuck-owner');
    const { parts } = reconciler({ leases: { release: () => Promise.reject(new Error('away')) } });
    const { wakeUps } = await leftBy(parts, [await dead('stuck-owner')], false);
    expect(wakeUps.map(({ pk }) => pk)).toEqual([pkOf('fine')]);
  });
});

describe('a sweep', () => {
  const follow = { dryRun: false, scan: false };

  test('expires who is overdue and wakes up all that they left, in one go', async () => {
    const { clock, parts } = reconciler();
    await worker('h-live', clock, -leaseMs);
    await worker('h-dead', clock, skewMs + 1);
    await Promise.all(['h-1', 'h-2', 'h-3'].map((id) => home.start(id)));
    await home.claim('h-1', 'h-dead');
    await home.claim('h-2', 'h-dead');
    await home.claim('h-3', 'h-live');
    expect(await sweep(parts, follow)).toMatchObject({ expired: ['h-dead'], orphans: 2, sent: 2 });
    expect(await home.wakeUps()).toEqual(['h-1', 'h-2']);
    // Nobody took them: they are woken up again.
    expect(await sweep(parts, follow)).toMatchObject({ expired: [], orphans: 2, sent: 2 });
  });

  test('follows those who died lately until nothing is left; who died long ago, only with the scan', async () => {
    const { clock, parts } = reconciler();
    await worker('i-live', clock, -leaseMs);
    await home.start('i-1');
    await home.claim('i-1', 'i-dead');
    await home.workers.expire('i-dead', undefined, clock.now() - 600_000);
    expect(await sweep(parts, follow)).toMatchObject({ orphans: 0, sent: 0 });
    expect(await sweep(parts, { ...follow, scan: true })).toMatchObject({ orphans: 1, sent: 1 });
    expect(await home.wakeUps()).toEqual(['i-1']);
  });

  test('with the scan also finds what is free; without, it leaves the index of orphans alone', async () => {
    let scans = 0;
    const inBucket: ConnectionsTable['inBucket'] = (...query) => {
      scans++;
      return home.connections.inBucket(...query);
    };
    const { parts } = reconciler({ connections: { ...home.connections, inBucket } });
    await home.start('j-free');
    expect(await sweep(parts, follow)).toMatchObject({ orphans: 0, sent: 0 });
    expect(scans).toBe(0);
    expect(await sweep(parts, { ...follow, scan: true })).toMatchObject({ orphans: 1, sent: 1 });
    expect(await home.wakeUps()).toEqual(['j-free']);
  });

  test('dry: names the dead and what they left, writes nothing and wakes up nobody', async () => {
    const { clock, parts } = reconciler();
    await worker('k-live', clock, -leaseMs);
    await worker('k-dead', clock, skewMs + 1);
    await home.start('k-1');
    await home.claim('k-1', 'k-dead');
    expect(await sweep(parts, { dryRun: true, scan: true })).toMatchObject({
      expired: ['k-dead'],
      orphans: 1,
      oldestAgeSeconds: 0,
      sent: 0,
      connectionIds: ['k-1'],
    });
    expect([await tombstone('k-dead'), await home.queue.depth()]).toEqual([undefined, 0]);
  });
});
