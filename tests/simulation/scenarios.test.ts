import { afterEach, describe, expect, test } from '@jest/globals';
import { type Plot, Stage } from './harness/stage.ts';

const minutes = (count: number) => count * 60_000;
const hours = (count: number) => minutes(60 * count);
const seeds = [1, 2, 3];
/** Each takes a second or two; on a busy machine many times as long. */
const withinMs = 300_000;
/** From when the reconciler works: worker lease and guard, a sweep, the wake-up, and the socket. */
const takenOverMs = 60_000;

let stages: Stage[] = [];
afterEach(() => {
  for (const stage of stages) stage.end();
  stages = [];
});

/** A fleet in which all is as it must be. */
async function fleet(plot: Partial<Plot> & { seed: number }): Promise<Stage> {
  const environment = {
    MAX_CONNECTIONS: '100',
    CONNECTION_LEASE_SECONDS: '3600',
    SWEEP_EVERY: '5',
    ...plot.environment,
  };
  const stage = new Stage({ connections: 8, workers: 3, everyMs: 2000, ...plot, environment });
  stages.push(stage);
  await stage.wait(5000);
  stage.startAll();
  await stage.wait(5000);
  await stage.settled(takenOverMs);
  return stage;
}

describe('without the reconciler', () => {
  test.each(seeds)(
    'for ten minutes, while a worker dies: all is owned again when it is back (seed %d)',
    async (seed) => {
      const stage = await fleet({ seed });
      stage.cast.reconciler.remove();
      await stage.wait(minutes(1));
      expect(stage.problem()).toBeUndefined();
      expect(stage.crashOne()).not.toEqual([]);
      await stage.wait(minutes(9));
      // It wouldn't show anything if somebody else had seen to it.
      expect(stage.problem()).toMatch(/whose process is dead/);
      stage.cast.reconciler.redeploy();
      await stage.settled(takenOverMs);
      await stage.wait(minutes(2));
      expect(stage.problem()).toBeUndefined();
    },
    withinMs,
  );

  test.each(seeds)(
    'for good, a START frees what a dead worker owned once the lease has run out (seed %d)',
    async (seed) => {
      const stage = await fleet({ seed, everyMs: 60_000 });
      stage.cast.reconciler.remove();
      const left = stage.crashOne();
      await stage.wait(minutes(30));
      stage.startAll();
      await stage.wait(minutes(1));
      // Its lease runs: nobody may take it, and the API says that nothing has changed.
      expect(left.some((pk) => stage.problem()?.startsWith(pk))).toBe(true);
      await stage.wait(minutes(31));
      expect(stage.problem()).toMatch(/whose process is dead/);
      stage.startAll();
      await stage.settled(takenOverMs);
      // From here on the rest of the leases is renewed as ever.
      await stage.wait(hours(1));
      expect(stage.problem()).toBeUndefined();
    },
    withinMs,
  );
});

describe('a reconciler in trouble is harmless', () => {
  test.each([
    ['hangs in a request', 'hangs'],
    ['runs twice at once', 'twice'],
    ['is killed halfway', 'dies'],
  ] as const)(
    'one that %s',
    async (_what, trouble) => {
      for (const seed of seeds) {
        const stage = await fleet({ seed });
        for (let round = 0; round < 4; round++) {
          stage.cast.reconciler.next = trouble;
          // Before, during and after the invocation that it concerns.
          await stage.wait(20_000 * round);
          expect(stage.crashOne()).not.toEqual([]);
          await stage.settled(minutes(1) + takenOverMs);
        }
        expect(stage.world.faults.get(`reconciler.${trouble}`)).toBeGreaterThan(1);
      }
    },
    withinMs,
  );
});

describe('what the fleet writes when nothing happens', () => {
  /** @returns requests that write, by kind, in one quiet hour */
  async function writes(connections: number, workerLease: boolean): Promise<Record<string, number>> {
    const connectionLease = workerLease ? '3600' : '20';
    const environment = { CONNECTION_LEASE_SECONDS: connectionLease };
    const stage = await fleet({ seed: 1, connections, workers: 2, everyMs: hours(1000), workerLease, environment });
    await stage.wait(minutes(1));
    const before = new Map(stage.world.requests);
    await stage.wait(hours(1));
    expect(stage.problem()).toBeUndefined();
    const counts = [...stage.world.requests].map(([kind, count]) => [kind, count - (before.get(kind) ?? 0)] as const);
    return Object.fromEntries(counts.filter(([kind, count]) => kind !== 'read' && count > 0));
  }

  test(
    'grows with its workers, and not with its connections',
    async () => {
      const [few, many] = [await writes(4, true), await writes(40, true)];
      // Each worker renews its lease every five seconds, each connection's is renewed three times an hour; nothing else.
      expect(Object.keys(few).sort()).toEqual(['renew', 'worker']);
      expect(Object.keys(many).sort()).toEqual(['renew', 'worker']);
      for (const { worker, renew, of } of [
        { ...few, of: 4 },
        { ...many, of: 40 },
      ] as { [name: string]: number }[]) {
        expect(Math.abs((worker ?? 0) - 2 * 720)).toBeLessThan(20);
        expect(renew).toBe(3 * (of ?? 0));
      }
    },
    withinMs,
  );

  test(
    'grows with its connections in the published setting',
    async () => {
      const [few, many] = [await writes(4, false), await writes(40, false)];
      expect(many['renew']).toBeGreaterThan(9 * (few['renew'] ?? 0));
      expect(many['renew']).toBeGreaterThan(40 * 700);
    },
    withinMs,
  );
});
