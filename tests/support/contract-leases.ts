import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { bucketOf, type Connection, isOrphan } from '../../shared/connection.ts';
import {
  acquire,
  atOnce,
  claimOf,
  type GetStore,
  now,
  shards,
  start,
  stop,
  type Tables,
  tablesOf,
  wsUrl,
} from './contract.ts';

export function leasesContract(getStore: GetStore): void {
  describe('leases', () => {
    let tables: Tables;
    beforeAll(() => {
      tables = tablesOf(getStore());
    });
    const item = (pk: string) => tables.connections.get(pk);
    const take = (pk: string, owner: string, untilMs?: number, at?: number) => acquire(tables, pk, owner, untilMs, at);
    const open = { status: 'OPEN', attempts: 0 } as const;
    const deadOwner = ({ leaseOwner, leaseEpoch }: Connection) => ({ owner: leaseOwner ?? '', epoch: leaseEpoch });

    describe('acquire', () => {
      test('exactly one of many rivals wins, with the next epoch', async () => {
        const pk = await start(tables, 'acquire-rivals');
        const { leaseEpoch: before = -1 } = (await item(pk)) ?? {};
        const rivals = Array.from({ length: 30 }, (_, i) => `worker-${i}`);
        const outcomes = await atOnce(
          getStore(),
          rivals.map((owner) => () => tables.leases.acquire(pk, owner, now + 20_000, now)),
        );
        const winners = outcomes.filter((outcome) => outcome !== 'refused');
        expect(winners).toHaveLength(1);
        expect(winners[0]).toMatchObject({ ...(await item(pk)), before: { leaseEpoch: before, leaseExpiresAtMs: 0 } });
        expect(winners[0]).toMatchObject({
          leaseEpoch: before + 1,
          leaseExpiresAtMs: now + 20_000,
          status: 'CONNECTING',
        });
      });

      test('not what somebody has, until the lease has run out', async () => {
        const pk = await start(tables, 'acquire-leased');
        const first = await take(pk, 'worker-1', now + 20_000);
        expect(await tables.leases.acquire(pk, 'worker-2', now + 60_000, now + 19_999)).toBe('refused');
        expect(await item(pk)).toEqual(first);
        const second = await take(pk, 'worker-2', now + 60_000, now + 20_000);
        expect(second).toMatchObject({ leaseOwner: 'worker-2', leaseEpoch: first.leaseEpoch + 1 });
      });

      test('not even by its own owner: that is what adopting is for', async () => {
        const pk = await start(tables, 'acquire-own');
        await take(pk, 'worker-1');
        expect(await tables.leases.acquire(pk, 'worker-1', now + 60_000, now)).toBe('refused');
      });

      test('neither what is stopped, nor what was given up, nor what is not there', async () => {
        const stopped = await start(tables, 'acquire-stopped');
        await stop(tables, 'acquire-stopped');
        expect(await tables.leases.acquire(stopped, 'worker-1', now + 20_000, now)).toBe('refused');
        expect(await tables.leases.acquire('CONN#acquire-nothing', 'worker-1', now + 20_000, now)).toBe('refused');
        expect(await item('CONN#acquire-nothing')).toBeUndefined();
        const failed = await start(tables, 'acquire-failed');
        const held = await take(failed, 'worker-1');
        const status = { status: 'FAILED', reason: 'HTTP 403', attempts: 1 } as const;
        await tables.leases.release(
          claimOf(held),
          { lastSeq: undefined, status, failedGeneration: held.generation },
          now,
        );
        expect(await tables.leases.acquire(failed, 'worker-2', now + 20_000, now)).toBe('refused');
      });

      test('an item that was written by hand, with nothing but what is wanted', async () => {
        const { dynamodb, tables: names } = getStore();
        const Item = { pk: { S: 'CONN#acquire-hand' }, desired_state: { S: 'STARTED' }, ws_url: { S: wsUrl } };
        await dynamodb.send(new PutItemCommand({ TableName: names.connections, Item }));
        expect(await take('CONN#acquire-hand', 'worker-hand')).toMatchObject({ leaseEpoch: 1, generation: 1 });
        const { rows } = await tables.connections.ownedBy('worker-hand');
        expect(rows).toEqual([{ pk: 'CONN#acquire-hand', desiredState: 'STARTED', generation: 1, leaseEpoch: 1 }]);
      });
    });

    describe('acquire what a dead worker left', () => {
      test('in one write, although its lease runs on, with the next epoch and the position', async () => {
        const pk = await start(tables, 'left-running');
        const held = await take(pk, 'worker-dead', now + 3_600_000);
        await tables.leases.renew(claimOf(held), now + 3_600_001, '17', now);
        const taken = await tables.leases.acquire(pk, 'worker-2', now + 60_000, now, deadOwner(held));
        expect(taken).toMatchObject({ leaseOwner: 'worker-2', leaseEpoch: held.leaseEpoch + 1, lastSeq: '17' });
        expect(taken).toMatchObject({ ...(await item(pk)), before: { leaseOwner: 'worker-dead', lastSeq: '17' } });
        // What of the dead one still arrives finds a newer epoch.
        expect(await tables.leases.renew(claimOf(held), now + 9_000_000, '99', now)).toBe('refused');
        const status = { status: 'PENDING', attempts: 0 } as const;
        expect(await tables.leases.release(claimOf(held), { lastSeq: '99', status }, now)).toBe('refused');
      });

      test('one of many rivals wins it', async () => {
        const pk = await start(tables, 'left-rivals');
        const dead = deadOwner(await take(pk, 'worker-dead', now + 3_600_000));
        const rivals = Array.from({ length: 20 }, (_, i) => `worker-${i}`);
        const outcomes = await atOnce(
          getStore(),
          rivals.map((owner) => () => tables.leases.acquire(pk, owner, now + 60_000, now, dead)),
        );
        expect(outcomes.filter((outcome) => outcome !== 'refused')).toHaveLength(1);
      });

      test('only in the epoch that was named, only from the owner that was named', async () => {
        const pk = await start(tables, 'left-epoch');
        const held = await take(pk, 'worker-dead', now + 3_600_000);
        for (const dead of [
          { ...deadOwner(held), epoch: held.leaseEpoch - 1 },
          { ...deadOwner(held), epoch: held.leaseEpoch + 1 },
          { ...deadOwner(held), owner: 'worker-1' },
        ])
          expect([dead, await tables.leases.acquire(pk, 'worker-2', now + 60_000, now, dead)]).toEqual([
            dead,
            'refused',
          ]);
        expect(await item(pk)).toEqual(held);
      });

      test('not what nobody wants any more, nor what another has taken meanwhile', async () => {
        const pk = await start(tables, 'left-stopped');
        const held = await take(pk, 'worker-dead', now + 3_600_000);
        await stop(tables, 'left-stopped');
        expect(await tables.leases.acquire(pk, 'worker-2', now + 60_000, now, deadOwner(held))).toBe('refused');
        await start(tables, 'left-stopped');
        expect(await tables.leases.acquire(pk, 'worker-2', now + 60_000, now, deadOwner(held))).not.toBe('refused');
        expect(await tables.leases.acquire(pk, 'worker-3', now + 60_000, now, deadOwner(held))).toBe('refused');
      });

      test('what is free too, whatever was said about it', async () => {
        const pk = await start(tables, 'left-free');
        const dead = { owner: 'worker-dead', epoch: 1 };
        expect(await tables.leases.acquire(pk, 'worker-2', now + 60_000, now, dead)).toMatchObject({
          leaseOwner: 'worker-2',
        });
      });
    });

    describe('adopt', () => {
      test('takes its own earlier claim under a new epoch, once', async () => {
        const pk = await start(tables, 'adopt-own');
        const first = await take(pk, 'worker-1');
        const adopted = await tables.leases.adopt(claimOf(first), now + 30_000, now);
        expect(adopted).toMatchObject({ leaseOwner: 'worker-1', leaseEpoch: first.leaseEpoch + 1 });
        expect(await tables.leases.adopt(claimOf(first), now + 40_000, now)).toBe('refused');
      });

      test('not what another worker has taken meanwhile, nor what was stopped', async () => {
        const pk = await start(tables, 'adopt-lost');
        const first = await take(pk, 'worker-1', now + 1);
        const second = await take(pk, 'worker-2', now + 60_000, now + 1);
        expect(await tables.leases.adopt(claimOf(first), now + 60_000, now + 1)).toBe('refused');
        await stop(tables, 'adopt-lost');
        expect(await tables.leases.adopt(claimOf(second), now + 60_000, now + 1)).toBe('refused');
      });
    });

    describe('renew', () => {
      test('moves the expiry forward, never back, and stores the position', async () => {
        const pk = await start(tables, 'renew-forward');
        const claim = claimOf(await take(pk, 'worker-1', now + 20_000));
        expect(await tables.leases.renew(claim, now + 30_000, '17', now + 10)).toBe('renewed');
        const renewed = await item(pk);
        expect(renewed).toMatchObject({ leaseExpiresAtMs: now + 30_000, lastSeq: '17', leaseEpoch: claim.epoch });
        // One that was sent before and comes late.
        expect(await tables.leases.renew(claim, now + 25_000, '16', now + 5)).toBe('refused');
        expect(await tables.leases.renew(claim, now + 30_000, '16', now + 5)).toBe('refused');
        expect(await item(pk)).toEqual(renewed);
        expect(await tables.leases.renew(claim, now + 40_000, undefined, now + 20)).toBe('renewed');
        expect(await item(pk)).toMatchObject({ lastSeq: '17' });
      });

      test('only by the owner, in its epoch, also when the lease has run out but nobody took it', async () => {
        const pk = await start(tables, 'renew-owner');
        const claim = claimOf(await take(pk, 'worker-1', now + 20_000));
        expect(await tables.leases.renew({ ...claim, owner: 'worker-2' }, now + 90_000, undefined, now)).toBe(
          'refused',
        );
        expect(await tables.leases.renew({ ...claim, epoch: claim.epoch - 1 }, now + 90_000, undefined, now)).toBe(
          'refused',
        );
        expect(await tables.leases.renew(claim, now + 60_000, undefined, now + 30_000)).toBe('renewed');
      });

      test('not after the release, which it must not undo, and never what was deleted', async () => {
        const pk = await start(tables, 'renew-released');
        const claim = claimOf(await take(pk, 'worker-1'));
        await tables.leases.release(claim, { lastSeq: '3', status: open }, now);
        const released = await item(pk);
        expect(await tables.leases.renew(claim, now + 90_000, '2', now)).toBe('refused');
        expect(await item(pk)).toEqual(released);
        expect(await tables.leases.renew({ ...claim, pk: 'CONN#renew-deleted' }, now + 90_000, '2', now)).toBe(
          'refused',
        );
        expect(await item('CONN#renew-deleted')).toBeUndefined();
      });
    });

    describe('release', () => {
      test('is free at once, without an owner, with the position, and says what is wanted now', async () => {
        const pk = await start(tables, 'release-free');
        const claim = claimOf(await take(pk, 'worker-1'));
        const status = { status: 'PENDING', attempts: 0 } as const;
        const after = await tables.leases.release(claim, { lastSeq: '42', status }, now + 5);
        expect(after).toMatchObject({
          desiredState: 'STARTED',
          leaseExpiresAtMs: 0,
          lastSeq: '42',
          leaseEpoch: claim.epoch,
        });
        expect(after).not.toMatchObject({ leaseOwner: expect.anything() });
        expect(after !== 'refused' && isOrphan(after, now + 5)).toBe(true);
        expect((await tables.connections.ownedBy('worker-1')).rows.map((row) => row.pk)).not.toContain(pk);
        expect(await take(pk, 'worker-2', now + 60_000, now + 5)).toMatchObject({ lastSeq: '42' });
      });

      test('only by the owner in its epoch', async () => {
        const pk = await start(tables, 'release-late');
        const first = claimOf(await take(pk, 'worker-1', now + 1));
        const second = await take(pk, 'worker-2', now + 60_000, now + 1);
        expect(await tables.leases.release(first, { lastSeq: '1', status: open }, now + 2)).toBe('refused');
        expect(await item(pk)).toEqual(second);
      });

      test('until the next try is due nobody gets it', async () => {
        const pk = await start(tables, 'release-parked');
        const claim = claimOf(await take(pk, 'worker-1'));
        const status = { status: 'RETRYING', reason: 'refused', attempts: 10 } as const;
        await tables.leases.release(claim, { lastSeq: undefined, status, notBeforeMs: now + 30_000 }, now);
        expect(await tables.leases.acquire(pk, 'worker-2', now + 60_000, now + 29_999)).toBe('refused');
        expect(await take(pk, 'worker-2', now + 60_000, now + 30_000)).toMatchObject({ attempts: 10 });
      });

      test('gives up only what it was refused for: a START in between wants something else', async () => {
        const pk = await start(tables, 'release-failed');
        const held = await take(pk, 'worker-1');
        const status = { status: 'FAILED', reason: 'HTTP 403', attempts: 1 } as const;
        await start(tables, 'release-failed', { url: 'wss://other.example.com/' });
        const given = { lastSeq: undefined, status, failedGeneration: held.generation };
        expect(await tables.leases.release(claimOf(held), given, now)).toBe('refused');
        expect(await item(pk)).toMatchObject({ leaseOwner: 'worker-1', generation: held.generation + 1 });
        const failed = await tables.leases.release(
          claimOf(held),
          { ...given, failedGeneration: held.generation + 1 },
          now,
        );
        expect(failed !== 'refused' && bucketOf(failed)).toBe('FAILED');
        const bucket = await Promise.all(
          Array.from({ length: shards }, (_, shard) => tables.connections.inBucket('FAILED', shard)),
        );
        expect(bucket.flatMap(({ rows }) => rows.map((row) => row.pk))).toContain(pk);
      });
    });

    test('a status is written by the owner in its epoch only', async () => {
      const pk = await start(tables, 'status');
      const claim = claimOf(await take(pk, 'worker-1'));
      expect(await tables.leases.setStatus(claim, { ...open, openedAtMs: now + 7 }, now + 7)).toBe('written');
      expect(await item(pk)).toMatchObject({ status: 'OPEN', openedAtMs: now + 7, leaseExpiresAtMs: now + 20_000 });
      expect(await tables.leases.setStatus({ ...claim, epoch: claim.epoch + 1 }, open, now)).toBe('refused');
    });
  });
}
