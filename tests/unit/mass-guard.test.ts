import { describe, expect, test } from '@jest/globals';
import { MassGuard } from '../../functions/mass-guard.ts';

const leaseMs = 20_000;

describe('when most workers are overdue at once', () => {
  test('nobody is expired for one more lease, counted from when that was first seen', () => {
    const guard = new MassGuard(leaseMs);
    expect(guard.holdsBack(3, 4, 50_000)).toBe(true);
    expect(guard.holdsBack(4, 4, 50_000 + leaseMs - 1)).toBe(true);
    expect(guard.holdsBack(4, 4, 50_000 + leaseMs)).toBe(false);
  });

  test('it begins anew after most were back in between', () => {
    const guard = new MassGuard(leaseMs);
    guard.holdsBack(3, 4, 0);
    expect(guard.holdsBack(1, 4, 10_000)).toBe(false);
    expect(guard.holdsBack(3, 4, leaseMs)).toBe(true);
  });
});

test.each([
  ['none of none', 0, 0],
  ['none', 0, 3],
  ['one of two', 1, 2],
  ['half', 75, 150],
  ['a third: a zone that died', 50, 150],
])('%s isn’t most', (_what, overdue, undead) => {
  expect(new MassGuard(leaseMs).holdsBack(overdue, undead, 0)).toBe(false);
});

test.each([
  ['the only one', 1, 1],
  ['two of three', 2, 3],
])('%s is most', (_what, overdue, undead) => {
  expect(new MassGuard(leaseMs).holdsBack(overdue, undead, 0)).toBe(true);
});
