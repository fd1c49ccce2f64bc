import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { fullJitterMs } from '../../shared/backoff.ts';

const backoff = { baseMs: 500, capMs: 30_000 };
const almostOne = 1 - Number.EPSILON;

test('the longest wait doubles with each failure, up to the cap', () => {
  const longest = [1, 2, 3, 4, 5, 6, 7, 8].map(
    (failures) => Math.ceil(fullJitterMs(backoff, failures, almostOne) / 100) * 100,
  );
  expect(longest).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
});

test('any wait is a whole number from nothing to the cap, however many failures', () => {
  const random = fc.double({ min: 0, max: almostOne, noNaN: true });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1e9 }), random, (failures, chance) => {
      const ms = fullJitterMs(backoff, failures, chance);
      expect(Number.isInteger(ms) && ms >= 0 && ms <= backoff.capMs).toBe(true);
    }),
  );
});

test('those that failed together come back spread over the whole time', () => {
  const waits = Array.from({ length: 100 }, (_, i) => fullJitterMs(backoff, 20, i / 100));
  expect(waits.filter((ms) => ms < 15_000)).toHaveLength(50);
});
