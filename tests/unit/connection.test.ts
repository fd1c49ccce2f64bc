import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { bucketOf, isOrphan, isWanted, shardKey } from '../../shared/connection.ts';

const anyId = fc.string({ minLength: 1, maxLength: 40 });

describe('where a connection stands in the index', () => {
  test('always in one and the same of the shards', () => {
    fc.assert(
      fc.property(anyId, fc.integer({ min: 1, max: 64 }), (id, shards) => {
        const key = shardKey('STARTED', id, shards);
        const [bucket, shard] = key.split('#');
        expect(bucket).toBe('STARTED');
        expect(Number(shard)).toBeGreaterThanOrEqual(0);
        expect(Number(shard)).toBeLessThan(shards);
        expect(shardKey('STARTED', id, shards)).toBe(key);
      }),
    );
  });

  test('about as many in each shard', () => {
    const counts = new Map<string, number>();
    for (let i = 0; i < 8000; i++) {
      const key = shardKey('STARTED', `CONN#meeting-${i}`, 8);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    expect([...counts.values()].every((count) => count > 800 && count < 1200)).toBe(true);
    expect(counts.size).toBe(8);
  });

  test.each([
    ['STARTED', 'OPEN', 'STARTED', true],
    ['STARTED', 'FAILED', 'FAILED', false],
    ['STOPPED', 'FAILED', 'STOPPED', false],
    ['STOPPED', 'OPEN', 'STOPPED', false],
  ] as const)('%s and %s: %s', (desiredState, status, bucket, wanted) => {
    expect(bucketOf({ desiredState, status })).toBe(bucket);
    expect(isWanted({ desiredState, status })).toBe(wanted);
    expect(isOrphan({ desiredState, status, leaseExpiresAtMs: 5 }, 5)).toBe(wanted);
    expect(isOrphan({ desiredState, status, leaseExpiresAtMs: 6 }, 5)).toBe(false);
  });
});
