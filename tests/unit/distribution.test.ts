import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Distribution, mostValues, summaryOf } from '../../shared/distribution.ts';

const of = (values: number[]) => {
  const distribution = new Distribution();
  for (const value of values) distribution.add(value);
  return distribution;
};

describe('a distribution', () => {
  test('counts every value, off by 5 % at most, and in order', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0.001, max: 5000, noNaN: true }), { minLength: 1, maxLength: 100 }),
        (values) => {
          const { values: kept, counts } = of(values).spread();
          expect(counts.reduce((sum, count) => sum + count, 0)).toBe(values.length);
          expect(kept).toEqual(kept.toSorted((a, b) => a - b));
          for (const value of values) {
            expect(Math.min(...kept.map((near) => Math.abs(near - value) / value))).toBeLessThan(0.06);
          }
        },
      ),
    );
  });

  test('never holds more different values than CloudWatch takes', () => {
    const wide = of(Array.from({ length: 400 }, (_, exponent) => 1.12 ** exponent));
    const { values, counts } = wide.spread();
    expect(values.length).toBeLessThanOrEqual(mostValues);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(400);
  });

  test('what is nothing, or less than nothing, is 0', () => {
    expect(of([0, -5, 0.0001]).spread()).toEqual({ values: [0], counts: [3] });
  });

  test('one added to another is as if it had seen all', () => {
    const whole = of([1, 2, 2, 3, 500]);
    const sum = of([1, 2]);
    sum.addAll(of([2, 3, 500]).spread());
    expect(sum.spread()).toEqual(whole.spread());
  });

  test('says its percentiles in a log line', () => {
    const { count, p50, p99, max } = summaryOf(of([...Array<number>(98).fill(10), 100, 1000]).spread());
    expect(count).toBe(100);
    expect([p50 / 10, p99 / 100, max / 1000].every((ratio) => Math.abs(ratio - 1) < 0.05)).toBe(true);
  });
});
