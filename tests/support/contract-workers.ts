import { DeleteItemCommand, GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { type WorkerReport, type WorkersTable, workersTable } from '../../shared/tables/workers.ts';
import { atOnce, type GetStore, now } from './contract.ts';

const dayMs = 86_400_000;

export function workersContract(getStore: GetStore): void {
  describe('workers', () => {
    let table: WorkersTable;
    beforeAll(() => {
      table = workersTable(getStore().dynamodb, getStore().tables.workers);
    });

    const report = (workerId: string, more: Partial<WorkerReport> = {}): WorkerReport => ({
      workerId,
      leaseExpiresAtMs: now + 20_000,
      held: 3,
      capacity: 700,
      draining: false,
      revision: 'r1',
      taskArn: 'arn:aws:ecs:us-east-1:000000000000:task/fleet/1',
      startedAtMs: now,
      expiredAtMs: undefined,
      ...more,
    });
    const forgottenAtMs = async (workerId: string) => {
      const Key = { worker_id: { S: workerId } };
      const request = { TableName: getStore().tables.workers, Key };
      const { Item: item } = await getStore().dynamodb.send(new GetItemCommand(request));
      return Number(item?.['expires_at']?.N) * 1000;
    };

    test('say what they hold, and it is there until long after their lease', async () => {
      const first = report('say-1');
      const second = report('say-2', { taskArn: undefined });
      expect(await table.register(first)).toBe('written');
      expect(await table.register(second)).toBe('written');
      const renewed = { ...first, held: 4, draining: true, leaseExpiresAtMs: now + 25_000 };
      expect(await table.renew(renewed)).toBe('written');
      const all = (await table.all()).filter(({ workerId }) => workerId.startsWith('say-'));
      expect(all.sort((a, b) => (a.workerId < b.workerId ? -1 : 1))).toEqual([renewed, second]);
      expect(await table.get('say-1')).toEqual(renewed);
      // Longer than a connection lease: a tombstone has to outlive whatever its worker owned.
      expect(await forgottenAtMs('say-1')).toBe(now + 25_000 + dayMs);
    });

    test('one that somebody damaged keeps no other from being read, and is neither alive nor dead', async () => {
      const damaged = {
        worker_id: { S: 'damaged-1' },
        held: { S: 'x' },
        lease_expires_at_ms: { S: 'soon' },
        expired_at_ms: { S: 'no' },
      };
      await getStore().dynamodb.send(new PutItemCommand({ TableName: getStore().tables.workers, Item: damaged }));
      expect((await table.all()).map(({ workerId }) => workerId)).toEqual(
        expect.arrayContaining(['say-1', 'damaged-1']),
      );
      expect(await table.get('damaged-1')).toMatchObject({ held: 0, leaseExpiresAtMs: 0, expiredAtMs: undefined });
      await getStore().dynamodb.send(
        new DeleteItemCommand({ TableName: getStore().tables.workers, Key: { worker_id: { S: 'damaged-1' } } }),
      );
    });

    test('one that nobody knows is nobody, and isn’t made by a renewal', async () => {
      expect(await table.get('unknown-1')).toBeUndefined();
      expect(await table.renew(report('unknown-1'))).toBe('refused');
      expect(await table.get('unknown-1')).toBeUndefined();
    });

    describe('register', () => {
      test('again, after a try that was applied and not answered: only forward', async () => {
        await table.register(report('again-1'));
        const later = report('again-1', { leaseExpiresAtMs: now + 21_000 });
        expect(await table.register(later)).toBe('written');
        // The first try, delayed on its way.
        expect(await table.register(report('again-1'))).toBe('refused');
        expect(await table.register(later)).toBe('refused');
        expect(await table.get('again-1')).toEqual(later);
      });

      test('never under an id that is dead', async () => {
        await table.register(report('burnt-1'));
        await table.expire('burnt-1', undefined, now);
        const dead = await table.get('burnt-1');
        expect(await table.register(report('burnt-1', { leaseExpiresAtMs: now + 99_000 }))).toBe('refused');
        expect(await table.get('burnt-1')).toEqual(dead);
      });
    });

    describe('renew', () => {
      test('moves the expiry forward, never back', async () => {
        await table.register(report('forward-1', { leaseExpiresAtMs: now + 20_000 }));
        const renewed = report('forward-1', { leaseExpiresAtMs: now + 30_000, held: 9 });
        expect(await table.renew(renewed)).toBe('written');
        expect(await table.renew(report('forward-1', { leaseExpiresAtMs: now + 25_000 }))).toBe('refused');
        expect(await table.renew(renewed)).toBe('refused');
        expect(await table.get('forward-1')).toEqual(renewed);
      });

      test('is refused once there is a tombstone, however far ahead it points', async () => {
        await table.register(report('dead-1'));
        await table.expire('dead-1', undefined, now);
        const dead = await table.get('dead-1');
        expect(await table.renew(report('dead-1', { leaseExpiresAtMs: now + 99_000 }))).toBe('refused');
        expect(await table.get('dead-1')).toEqual(dead);
      });
    });

    describe('expire', () => {
      test('what has run out before the time that is given, and is remembered from then on', async () => {
        await table.register(report('overdue-1', { leaseExpiresAtMs: now }));
        expect(await table.expire('overdue-1', now, now + 5)).toBe('refused');
        expect(await table.get('overdue-1')).toMatchObject({ expiredAtMs: undefined });
        expect(await table.expire('overdue-1', now + 1, now + 5)).toBe('written');
        expect(await table.get('overdue-1')).toMatchObject({ expiredAtMs: now + 5, held: 0, leaseExpiresAtMs: now });
        expect(await forgottenAtMs('overdue-1')).toBe(Math.ceil((now + 5 + dayMs) / 1000) * 1000);
      });

      test('not one that has renewed in between', async () => {
        await table.register(report('renewed-1', { leaseExpiresAtMs: now }));
        await table.renew(report('renewed-1', { leaseExpiresAtMs: now + 20_000 }));
        expect(await table.expire('renewed-1', now + 5_000, now + 5_000)).toBe('refused');
        expect(await table.get('renewed-1')).toMatchObject({ expiredAtMs: undefined, held: 3 });
      });

      test('one that is known to be gone, whatever its lease says', async () => {
        await table.register(report('gone-1'));
        expect(await table.expire('gone-1', undefined, now)).toBe('written');
        expect(await table.get('gone-1')).toMatchObject({ expiredAtMs: now, leaseExpiresAtMs: now + 20_000 });
      });

      test('twice is once: the first time counts', async () => {
        await table.register(report('twice-1', { leaseExpiresAtMs: now }));
        const tries = [1, 2, 3].map((ms) => () => table.expire('twice-1', now + 1, now + ms));
        const outcomes = await atOnce(getStore(), tries);
        expect(outcomes.sort()).toEqual(['refused', 'refused', 'written']);
        const dead = await table.get('twice-1');
        expect(await table.expire('twice-1', undefined, now + 9)).toBe('refused');
        expect(await table.get('twice-1')).toEqual(dead);
      });

      test('an id without a row: not as overdue; as gone it becomes a tombstone, and is never used again', async () => {
        expect(await table.expire('rowless-1', now + 1, now)).toBe('refused');
        expect(await table.get('rowless-1')).toBeUndefined();
        expect(await table.expire('rowless-1', undefined, now)).toBe('written');
        expect(await table.get('rowless-1')).toMatchObject({ expiredAtMs: now, held: 0 });
        expect(await table.register(report('rowless-1'))).toBe('refused');
      });
    });

    test('a renewal and a tombstone at once: whichever is first, it is never alive with a tombstone forgotten', async () => {
      const ids = Array.from({ length: 10 }, (_, i) => `race-${i}`);
      for (const id of ids) {
        await table.register(report(id, { leaseExpiresAtMs: now }));
        const [renewal, tombstone] = await atOnce(getStore(), [
          () => table.renew(report(id, { leaseExpiresAtMs: now + 20_000 })),
          () => table.expire(id, now + 1, now + 2),
        ]);
        expect(renewal).toBe(tombstone === 'written' ? 'refused' : 'written');
        const row = await table.get(id);
        expect(row?.expiredAtMs !== undefined).toBe(tombstone === 'written');
      }
    });
  });
}
