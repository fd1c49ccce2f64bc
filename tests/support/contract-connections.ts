import { DeleteItemCommand, GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { type Bucket, pkOf } from '../../shared/connection.ts';
import type { Item } from '../../shared/tables/item.ts';
import { acquire, claimOf, type GetStore, now, shards, start, stop, type Tables, tablesOf, wsUrl } from './contract.ts';

export function connectionsContract(getStore: GetStore): void {
  describe('connections', () => {
    let tables: Tables;
    beforeAll(() => {
      tables = tablesOf(getStore());
    });
    const item = (pk: string) => tables.connections.get(pk);
    const intent = {
      desiredState: 'STARTED',
      wsUrl,
      source: { name: 'plain' },
      generation: 1,
      status: 'PENDING',
    } as const;

    /** Page by page. */
    async function allIn(bucket: Bucket, query: { expiredAtMs?: number; limit?: number } = {}): Promise<string[]> {
      const pks: string[] = [];
      for (let shard = 0; shard < shards; shard++) {
        let from: Item | undefined;
        do {
          const page = await tables.connections.inBucket(bucket, shard, { ...query, from });
          expect(page.rows.length).toBeLessThanOrEqual(query.limit ?? Infinity);
          pks.push(...page.rows.map(({ pk }) => pk));
          from = page.next;
        } while (from);
      }
      return pks.sort();
    }

    describe('want', () => {
      test('creates it free, and never twice', async () => {
        const pk = pkOf('want-new');
        expect(await tables.connections.want(pk, intent, undefined, now)).toBe('written');
        const first = await item(pk);
        expect(first).toMatchObject({
          generation: 1,
          leaseExpiresAtMs: 0,
          createdAtMs: now,
          updatedAtMs: now,
          attempts: 0,
        });
        expect(first?.leaseOwner).toBeUndefined();
        expect(await tables.connections.want(pk, { ...intent, generation: 9 }, undefined, now + 1)).toBe('refused');
        expect(await item(pk)).toEqual(first);
      });

      test('leaves lease and position alone', async () => {
        const pk = await start(tables, 'want-leased');
        const claim = claimOf(await acquire(tables, pk, 'worker-1'));
        await tables.leases.renew(claim, now + 30_000, '17', now);
        const before = await item(pk);
        await start(tables, 'want-leased', { url: 'wss://other.example.com/', at: now + 5 });
        const changed = { wsUrl: 'wss://other.example.com/', generation: 2, status: 'PENDING', updatedAtMs: now + 5 };
        expect(await item(pk)).toEqual({ ...before, ...changed });
        expect(await tables.leases.renew(claim, now + 40_000, '18', now)).toBe('renewed');
      });

      test.each<[string, (id: string, pk: string) => Promise<unknown>]>([
        ['somebody wanted something else', (id) => start(tables, id, { url: 'wss://other.example.com/' })],
        ['somebody stopped it', (id) => stop(tables, id)],
        ['a worker took it', (_id, pk) => acquire(tables, pk, 'worker-1')],
        [
          'a newer event was heard',
          async (_id, pk) => {
            const seen = await item(pk);
            return seen && tables.connections.noteEventTime(pk, now, seen);
          },
        ],
      ])('is refused when meanwhile %s', async (what, meanwhile) => {
        const id = `want-${what.replaceAll(' ', '-')}`;
        const pk = await start(tables, id);
        const seen = await item(pk);
        await meanwhile(id, pk);
        const after = await item(pk);
        expect(after).not.toEqual(seen);
        expect(await tables.connections.want(pk, { ...intent, generation: 7 }, seen, now)).toBe('refused');
        expect(await item(pk)).toEqual(after);
      });

      test('an item that was deleted and is started anew never has an old epoch again', async () => {
        const pk = await start(tables, 'want-anew');
        const first = await acquire(tables, pk, 'worker-1');
        await getStore().dynamodb.send(
          new DeleteItemCommand({ TableName: getStore().tables.connections, Key: { pk: { S: pk } } }),
        );
        await start(tables, 'want-anew', { at: now + 5_000 });
        const again = await acquire(tables, pk, 'worker-1', now + 90_000, now + 5_000);
        expect(again.leaseEpoch).toBeGreaterThan(first.leaseEpoch);
      });

      test('STOP ends it after a time, and START takes that back', async () => {
        const pk = await start(tables, 'want-ttl');
        const expiresAt = async () => {
          const request = { TableName: getStore().tables.connections, Key: { pk: { S: pk } } };
          return (await getStore().dynamodb.send(new GetItemCommand(request))).Item?.['expires_at']?.N;
        };
        expect(await expiresAt()).toBeUndefined();
        await stop(tables, 'want-ttl');
        expect(await expiresAt()).toBe(String((now + 86_400_000) / 1000));
        await start(tables, 'want-ttl');
        expect(await expiresAt()).toBeUndefined();
      });
    });

    test('noteEventTime changes nothing else', async () => {
      const pk = await start(tables, 'note');
      const seen = await item(pk);
      if (!seen) throw new Error('it was started');
      expect(await tables.connections.noteEventTime(pk, now + 5, seen)).toBe('written');
      expect(await item(pk)).toEqual({ ...seen, eventTimeMs: now + 5 });
      expect(await tables.connections.noteEventTime(pk, now + 6, seen)).toBe('refused');
    });

    describe('the index by state', () => {
      test('has each connection in one bucket, page by page', async () => {
        const ids = Array.from({ length: 25 }, (_, i) => `bucket-${String(i).padStart(2, '0')}`);
        await Promise.all(ids.map((id) => start(tables, id)));
        await Promise.all(ids.slice(20).map((id) => stop(tables, id)));
        const mine = (pks: string[]) => pks.filter((pk) => pk.startsWith('CONN#bucket-'));
        for (const limit of [1, 3, 1000]) {
          expect(mine(await allIn('STARTED', { limit }))).toEqual(ids.slice(0, 20).map(pkOf));
          expect(mine(await allIn('STOPPED', { limit }))).toEqual(ids.slice(20).map(pkOf));
        }
      });

      test('finds what has no lease at a time', async () => {
        const ids = ['due-free', 'due-expired', 'due-leased'];
        await Promise.all(ids.map((id) => start(tables, id)));
        await acquire(tables, pkOf('due-expired'), 'worker-1', now + 10);
        await acquire(tables, pkOf('due-leased'), 'worker-1', now + 11);
        const due = async (expiredAtMs: number) =>
          (await allIn('STARTED', { expiredAtMs })).filter((pk) => pk.startsWith('CONN#due-'));
        expect(await due(now)).toEqual(['CONN#due-free']);
        expect(await due(now + 10)).toEqual(['CONN#due-expired', 'CONN#due-free']);
        expect(await due(now + 11)).toHaveLength(3);
      });
    });

    test('the index by owner shows all that a worker owns, page by page', async () => {
      const ids = Array.from({ length: 7 }, (_, i) => `owned-${i}`);
      await Promise.all(ids.map(async (id) => acquire(tables, await start(tables, id), 'worker-owner')));
      await stop(tables, 'owned-0');
      const first = await tables.connections.ownedBy('worker-owner', undefined, 3);
      expect(first.rows).toHaveLength(3);
      const rest = await tables.connections.ownedBy('worker-owner', first.next);
      const rows = [...first.rows, ...rest.rows];
      expect(rows.map(({ pk }) => pk).sort()).toEqual(ids.map(pkOf));
      expect(rows.filter(({ desiredState }) => desiredState === 'STOPPED').map(({ pk }) => pk)).toEqual([
        'CONN#owned-0',
      ]);
      expect(await tables.connections.ownedBy('nobody')).toEqual({ rows: [], next: undefined });
    });

    test('getAll reads the items that are there, a hundred at once', async () => {
      const ids = Array.from({ length: 98 }, (_, i) => `all-${i}`);
      await Promise.all(ids.map((id) => start(tables, id)));
      const found = await tables.connections.getAll([...ids, 'all-missing', 'all-too'].map(pkOf));
      expect(found.map(({ pk }) => pk).sort()).toEqual(ids.map(pkOf).sort());
      expect(await tables.connections.getAll([])).toEqual([]);
    });

    test('an item that somebody broke is named, with what is wrong', async () => {
      const Item = { pk: { S: 'CONN#broken' }, desired_state: { S: 'RUNNING' }, ws_url: { N: '1' } };
      await getStore().dynamodb.send(new PutItemCommand({ TableName: getStore().tables.connections, Item }));
      await expect(item('CONN#broken')).rejects.toThrow(/CONN#broken.*desired_state.*ws_url/);
    });

    test('what is stored comes back as it was, whatever the source was told', async () => {
      const source = { name: 'numbered', parameters: { list: [1, 2.5], text: 'ü', deep: { none: null, yes: true } } };
      const pk = await start(tables, 'round-trip', { source, eventTimeMs: now - 5 });
      expect(await item(pk)).toMatchObject({ source, eventTimeMs: now - 5, wsUrl });
      expect(await start(tables, 'round-trip', { source })).toBe(pk);
      expect(await item(pk)).toMatchObject({ generation: 1 });
    });
  });
}
