import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { gapsSince, percentile } from '../../local/measure.ts';
import { FrameBuilder } from '../../local/source/frames.ts';
import { Ledger } from '../../local/source/ledger.ts';
import { Sequence } from '../../local/source/sequence.ts';
import { Wheel } from '../../local/source/wheel.ts';

afterEach(() => {
  jest.useRealTimers();
});

describe('the numbers of a source', () => {
  test('begin with 1 at the first dial and follow the time', () => {
    const sequence = new Sequence(10_000, 2);
    expect([9_999, 10_000, 10_499, 10_500, 20_000].map((ms) => sequence.highestAt(ms))).toEqual([0, 1, 1, 2, 21]);
    expect(sequence.dueAtMs(21)).toBe(20_000);
  });

  test('keep their time when the rate changes, and go on from there', () => {
    const sequence = new Sequence(0, 1);
    sequence.setRate(2_500, 10);
    expect(sequence.dueAtMs(3)).toBe(2_000);
    expect(sequence.dueAtMs(4)).toBe(2_600);
    expect(sequence.highestAt(3_500)).toBe(13);
    sequence.setRate(3_500, 0);
    expect([sequence.highestAt(99_000), sequence.dueAtMs(14)]).toEqual([13, null]);
  });
});

describe('the wheel', () => {
  test('runs what is due, never early, and what is far away only when its turn has come', () => {
    jest.useFakeTimers({ now: 1_000_000 });
    const wheel = new Wheel();
    const ran: [string, number][] = [];
    const item = (name: string, nextInMs: number | null) => ({
      dueAtMs: 0,
      run: (nowMs: number) => {
        ran.push([name, nowMs - 1_000_000]);
        return nextInMs === null ? null : nowMs + nextInMs;
      },
    });
    wheel.schedule(item('soon', null), 1_000_005);
    wheel.schedule(item('every second', 1_000), 1_000_000);
    wheel.schedule(item('far', null), 1_012_000);
    const cancelled = item('cancelled', null);
    wheel.schedule(cancelled, 1_000_500);
    wheel.cancel(cancelled);
    jest.advanceTimersByTime(12_100);
    wheel.stop();
    expect(ran.filter(([name]) => name === 'soon')).toEqual([['soon', 10]]);
    expect(ran.filter(([name]) => name === 'far')).toEqual([['far', 12_000]]);
    expect(ran.filter(([name]) => name === 'every second').map(([, atMs]) => atMs)).toEqual(
      Array.from({ length: 13 }, (_, turn) => 10 + turn * 1_000),
    );
    expect(ran.some(([name]) => name === 'cancelled')).toBe(false);
  });
});

describe('a frame', () => {
  test.each([
    ['short', 10, 2],
    ['with a 16-bit length', 200, 4],
    ['with a 64-bit length', 70_000, 10],
  ])('%s says its length', (_, size, headerLength) => {
    const frame = new FrameBuilder('ä-1', size).build(17, 1, false);
    const message = JSON.parse(frame.subarray(headerLength).toString('utf8')) as { seq: number; id: string };
    expect(message).toMatchObject({ seq: 17, at: 1, id: 'ä-1' });
    expect(frame[0]).toBe(0x81);
  });
});

describe('the ledger', () => {
  test('counts the time in which two sockets were open at once', () => {
    const ledger = new Ledger();
    const first = ledger.connected(1_000, null);
    const second = ledger.connected(5_000, 7);
    ledger.disconnected(5_400, first, 1006);
    ledger.disconnected(9_000, second, 1000);
    const report = ledger.report(9_000, 'a', 0);
    expect(report).toMatchObject({ open: 0, maxOpen: 2, overlapMs: 400, closeCodes: { 1000: 1, 1006: 1 } });
    expect(gapsSince([report], 0)).toEqual([0, Number.POSITIVE_INFINITY]);
  });

  test('counts numbers that were sent again', () => {
    const ledger = new Ledger();
    for (const seq of [1, 2, 3, 2, 3, 4]) ledger.sentSeq(seq);
    expect(ledger.report(0, 'a', 4)).toMatchObject({ sent: 6, resent: 2, highestSent: 4 });
  });
});

test('a percentile is one of the values', () => {
  expect([0.5, 0.99, 1].map((share) => percentile([3, 1, 2, 4], share))).toEqual([2, 4, 4]);
});
