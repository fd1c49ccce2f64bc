import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createBatcher } from '../../shared/batcher.ts';
import { type Clock, systemClock } from '../../shared/clock.ts';

/** Time passes when the test says so, for whoever sleeps. */
function handClock() {
  const sleepers: (() => void)[] = [];
  const clock: Clock = { ...systemClock, sleep: () => new Promise((resolve) => void sleepers.push(resolve)) };
  const pass = async () => {
    while (sleepers.length > 0) {
      for (const wake of sleepers.splice(0)) wake();
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { clock, pass };
}

const none = new Map<number, Error>();

describe('a batcher', () => {
  test('waits a moment, and sends what came meanwhile together', async () => {
    const { clock, pass } = handClock();
    const sent: number[][] = [];
    const add = createBatcher<number>({ clock, size: 10, lingerMs: 5 }, async (items) => {
      sent.push(items);
      return none;
    });
    const all = Promise.all([1, 2, 3].map(add));
    expect(sent).toEqual([]);
    await pass();
    await all;
    expect(sent).toEqual([[1, 2, 3]]);
  });

  test('does not wait when it is full', async () => {
    const { clock } = handClock();
    const sent: number[][] = [];
    const add = createBatcher<number>({ clock, size: 2, lingerMs: 5 }, async (items) => {
      sent.push(items);
      return none;
    });
    await Promise.all([1, 2].map(add));
    expect(sent).toEqual([[1, 2]]);
  });

  test('each item has its own outcome', async () => {
    const { clock, pass } = handClock();
    const add = createBatcher<string>(
      { clock, size: 10, lingerMs: 5 },
      async () => new Map([[1, new Error('bad one')]]),
    );
    const outcomes = Promise.allSettled(['a', 'b', 'c'].map(add));
    await pass();
    expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  test('a request that fails fails its items, and no later ones', async () => {
    const { clock, pass } = handClock();
    let requests = 0;
    const add = createBatcher<string>({ clock, size: 2, lingerMs: 5 }, async () => {
      if (requests++ === 0) throw new Error('away');
      return none;
    });
    const outcomes = Promise.allSettled(['a', 'b', 'c'].map(add));
    await pass();
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
  });

  test('nothing is lost, sent twice, out of order, or in a batch that is too large', async () => {
    const bursts = fc.array(fc.nat({ max: 30 }), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(bursts, fc.integer({ min: 1, max: 10 }), async (counts, size) => {
        const { clock, pass } = handClock();
        const sent: number[][] = [];
        const add = createBatcher<number>({ clock, size, lingerMs: 5 }, async (items) => {
          sent.push(items);
          return none;
        });
        let next = 0;
        const all: Promise<void>[] = [];
        for (const count of counts) {
          for (let i = 0; i < count; i++) all.push(add(next++));
          await pass();
        }
        await Promise.all(all);
        expect(sent.flat()).toEqual(Array.from({ length: next }, (_, i) => i));
        expect(sent.every((batch) => batch.length >= 1 && batch.length <= size)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  test('keeps the process alive until a batch that is due has gone out', async () => {
    const root = join(import.meta.dirname, '..', '..');
    const program = `
      import { createBatcher } from './shared/batcher.ts';
      import { systemClock as clock } from './shared/clock.ts';
      const add = createBatcher({ clock, size: 10, lingerMs: 20 }, async () => new Map());
      await add(1);
      console.log('sent');`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module-typescript', '-e', program], {
      cwd: root,
    });
    expect(stdout).toBe('sent\n');
  });
});
