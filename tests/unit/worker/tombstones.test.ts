import { expect, test } from '@jest/globals';
import { Tombstones } from '../../../worker/tombstones.ts';
import { fakeWorkers } from '../../support/workers-table.ts';

const report = {
  workerId: 'w-1',
  leaseExpiresAtMs: 1_000,
  held: 0,
  capacity: 1,
  draining: false,
  revision: 'r1',
  taskArn: undefined,
  startedAtMs: 0,
};

function tombstones() {
  const { workers } = fakeWorkers();
  const read: string[] = [];
  const get = (id: string) => {
    read.push(id);
    return workers.get(id);
  };
  return { workers, read, tombstones: new Tombstones({ get }) };
}

test('a row that is missing proves nothing', async () => {
  const { tombstones: dead, read } = tombstones();
  expect([await dead.isDead('w-1'), await dead.isDead('w-1')]).toEqual([false, false]);
  expect(read).toEqual(['w-1', 'w-1']);
});

test('a lease that ran out proves nothing either: only the tombstone does', async () => {
  const { tombstones: dead, workers } = tombstones();
  await workers.register(report);
  expect(await dead.isDead('w-1')).toBe(false);
  await workers.expire('w-1', undefined, 5_000);
  expect(await dead.isDead('w-1')).toBe(true);
});

test('each is read once: it is for good', async () => {
  const { tombstones: dead, workers, read } = tombstones();
  await workers.expire('w-1', undefined, 5_000);
  expect([await dead.isDead('w-1'), await dead.isDead('w-1')]).toEqual([true, true]);
  expect(read).toEqual(['w-1']);
});

test('those that ask together read once; a no isn’t shared, since it may be old', async () => {
  const { tombstones: dead, workers, read } = tombstones();
  const before = [dead.isDead('w-1'), dead.isDead('w-1')];
  expect(await Promise.all(before)).toEqual([false, false]);
  expect(read.splice(0)).toEqual(['w-1', 'w-1']);
  await workers.expire('w-1', undefined, 5_000);
  const after = [dead.isDead('w-1'), dead.isDead('w-1'), dead.isDead('w-1')];
  expect(await Promise.all(after)).toEqual([true, true, true]);
  expect(read).toEqual(['w-1']);
});

test('a store that doesn’t answer says nothing about anybody', async () => {
  const away = new Tombstones({ get: () => Promise.reject(new Error('away')) });
  await expect(away.isDead('w-1')).rejects.toThrow('away');
});
