/** The rules by which the cost bench charges, against the examples that AWS gives for them. */
import { describe, expect, test } from '@jest/globals';
import { Store } from '../../bench/world/store.ts';
import { tableNames } from '../../bench/world/tables.ts';
import {
  type IndexShape,
  indexWriteUnits,
  itemBytes,
  readUnits,
  refusedWriteUnits,
  tableWriteUnits,
  writeUnits,
} from '../../bench/world/units.ts';
import { connectionsTable } from '../../shared/tables/connections.ts';
import type { Item } from '../../shared/tables/item.ts';
import { leasesTable } from '../../shared/tables/leases.ts';
import { asClient } from '../simulation/harness/client.ts';

const kilobytes = (size: number): number => Math.round(size * 1024);
/** An item of just this size. */
const itemOf = (bytes: number): Item => ({ a: { S: 'x'.repeat(bytes - 1) } });

describe('sizes: "DynamoDB item sizes and formats"', () => {
  test.each([
    ['names and values, in UTF-8', { größe: { S: 'ß' } }, 9],
    ['a number: a byte for two digits, and one more', { n: { N: '27' } }, 3],
    ['an odd digit takes a byte of its own', { n: { N: '123' } }, 4],
    ['zeros at the ends weigh nothing', { n: { N: '1900000000000' } }, 3],
    ['nor do the point and the sign', { n: { N: '-0.0250' } }, 3],
    ['nothing but zeros', { n: { N: '0' } }, 2],
    ['a boolean, and null', { b: { BOOL: true }, n: { NULL: true } }, 4],
    ['binary, by its raw bytes', { b: { B: new Uint8Array(6) } }, 7],
    ['a map: three bytes, and one for each element', { m: { M: { k: { S: 'v' } } } }, 7],
    ['a list: the same', { l: { L: [{ S: 'v' }, { S: 'w' }] } }, 8],
  ] as [string, Item, number][])('%s', (_, item, bytes) => expect(itemBytes(item)).toBe(bytes));
});

describe('reads: "DynamoDB read and write operations"', () => {
  test.each([
    ['3,500 bytes count as 4 KB', 3500, true, 1],
    ['just 4 KB', kilobytes(4), true, 1],
    ['and a byte more', kilobytes(4) + 1, true, 2],
    ['8 KB, consistent', kilobytes(8), true, 2],
    ['8 KB, eventually', kilobytes(8), false, 1],
    ['10 KB count as 12', kilobytes(10), true, 3],
    ['what isn’t there', 0, true, 1],
    ['nor found by a query', 0, false, 0.5],
    ['a query over 40.8 KB counts as 44', kilobytes(40.8), true, 11],
    ['a query over 1,500 items of 64 bytes counts as 96 KB', 1500 * 64, true, 24],
    ['a query of an index over 8 entries of 2,000 bytes', 8 * 2000, false, 2],
  ] as [string, number, boolean, number][])('%s', (_, bytes, consistent, units) =>
    expect(readUnits(bytes, consistent)).toBe(units),
  );
});

describe('writes: the same page', () => {
  test.each([
    ['500 bytes count as 1 KB', 500, 1],
    ['just 1 KB', kilobytes(1), 1],
    ['one at least', 0, 1],
    ['1.6 KB count as 2', kilobytes(1.6), 2],
    ['3.5 KB count as 4', kilobytes(3.5), 4],
  ])('%s', (_, bytes, units) => expect(writeUnits(bytes)).toBe(units));

  test('an update counts by the larger of before and after', () => {
    expect(tableWriteUnits(itemOf(kilobytes(3)), itemOf(500))).toBe(3);
    expect(tableWriteUnits(itemOf(500), itemOf(kilobytes(2)))).toBe(2);
    expect(tableWriteUnits(undefined, itemOf(500))).toBe(1);
  });

  test('a refused one counts too, by what is there', () => {
    expect(refusedWriteUnits(itemOf(kilobytes(1)))).toBe(1);
    expect(refusedWriteUnits(itemOf(kilobytes(2)))).toBe(2);
    expect(refusedWriteUnits(undefined)).toBe(1);
  });
});

describe('indexes: "Using Global Secondary Indexes", write capacity units', () => {
  const index: IndexShape = { name: 'i', keys: ['h', 's'], attributes: ['h', 's', 'pk', 'p'] };
  const item = { pk: { S: '1' }, h: { S: 'a' }, s: { N: '1' }, p: { S: 'x' }, other: { S: 'y' } };
  const { s: _, ...sparse } = item;
  test.each([
    ['a new entry', undefined, item, 1],
    ['an entry that goes with its item', item, undefined, 1],
    ['an item that gets the missing key', sparse, item, 1],
    ['an item that loses a key', item, sparse, 1],
    ['an item that has no entry before or after', sparse, { ...sparse, p: { S: 'z' } }, 0],
    ['a key that changes: a delete and a put', item, { ...item, s: { N: '2' } }, 2],
    ['a projected attribute that changes', item, { ...item, p: { S: 'z' } }, 1],
    ['an attribute that isn’t projected', item, { ...item, other: { S: 'z' } }, 0],
    ['the same written again', item, { ...item, s: { N: '1' } }, 0],
    [
      'a large entry that moves, each half by its size',
      { ...item, p: { S: 'x'.repeat(1500) } },
      { ...item, h: { S: 'b' } },
      3,
    ],
  ] as [string, Item | undefined, Item | undefined, number][])('%s', (__, before, after, units) =>
    expect(indexWriteUnits(before, after, index)).toBe(units),
  );
});

describe('what holdfast does, on the tables as they are deployed', () => {
  const claim = { pk: 'CONN#1', owner: 'w-1', epoch: 1_790_000_001 };

  async function acquired() {
    const store = new Store({ nowMs: () => 0, indexLagMs: 0 });
    const charged: Record<string, number>[] = [];
    const client = asClient((command) => {
      const { answer, uses, fault } = store.execute(command);
      charged.push(Object.fromEntries(uses.map(({ target, write, read }) => [target, write + read])));
      return fault ? Promise.reject(fault) : Promise.resolve(answer);
    });
    const connections = connectionsTable(client, tableNames.connections, { shards: 16, stoppedTtlMs: 1 });
    const leases = leasesTable(client, tableNames.connections, { shards: 16 });
    const wanted = {
      desiredState: 'STARTED',
      wsUrl: 'wss://a',
      source: { name: 'plain' },
      generation: 1,
      status: 'PENDING',
    } as const;
    await connections.want(claim.pk, wanted, undefined, 1_790_000_000_000);
    await leases.acquire(claim.pk, claim.owner, 1_790_000_020_000, 1_790_000_000_000);
    charged.splice(0);
    return { connections, leases, charged };
  }

  test('a heartbeat of the published design is three units: it moves the key of the index of orphans', async () => {
    const { leases, charged } = await acquired();
    expect(await leases.renew(claim, 1_790_000_025_000, undefined, 1_790_000_005_000)).toBe('renewed');
    expect(charged).toEqual([{ connections: 1, 'connections/by_desired_state': 2 }]);
  });

  test('taking over from the dead is five: it moves both', async () => {
    const { leases, charged } = await acquired();
    const dead = { owner: claim.owner, epoch: claim.epoch };
    expect(await leases.acquire(claim.pk, 'w-2', 1_790_000_030_000, 1_790_000_005_000, dead)).not.toBe('refused');
    expect(charged).toEqual([{ connections: 1, 'connections/by_desired_state': 2, 'connections/by_owner': 2 }]);
  });

  test('a status is one, and so is a lost race', async () => {
    const { leases, charged } = await acquired();
    await leases.setStatus(claim, { status: 'OPEN', attempts: 0 }, 1_790_000_005_000);
    expect(await leases.acquire(claim.pk, 'w-2', 1_790_000_030_000, 1_790_000_005_000)).toBe('refused');
    expect(charged).toEqual([{ connections: 1 }, { connections: 1 }]);
  });

  test('the STOP check reads entries of the index, half a unit for 4 KB of them', async () => {
    const { connections, charged } = await acquired();
    expect((await connections.ownedBy(claim.owner)).rows).toHaveLength(1);
    expect(charged).toEqual([{ 'connections/by_owner': 0.5 }]);
  });
});
