import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ClockSkew } from '../../shared/skew.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** A worker's clock that is `aheadMs` before the store's. @param wallMs where in its second the store's clock is at first */
function compared(aheadMs: number, wallMs = 1_700_000_000_000) {
  const clock = new VirtualClock(wallMs);
  const skew = new ClockSkew(clock);
  let nowAheadMs = aheadMs;
  /** One request: `thereMs` until the store says its date, `backMs` until that has arrived. */
  const ask = async (thereMs = 5, backMs = 5) => {
    const ours = () => clock.now() + nowAheadMs;
    const sentAtMs = ours();
    await clock.advance(thereMs);
    const dateMs = Math.floor(clock.now() / 1000) * 1000;
    await clock.advance(backMs);
    skew.add({ sentAtMs, answeredAtMs: ours(), dateMs });
  };
  const ahead = (ms: number) => {
    nowAheadMs = ms;
  };
  return { skew, clock, ask, ahead };
}

const widthOf = ({ skew }: { skew: ClockSkew }) => {
  const { lowMs, highMs } = skew.bounds ?? { lowMs: Number.NEGATIVE_INFINITY, highMs: Number.POSITIVE_INFINITY };
  return highMs - lowMs;
};

describe('the difference of clocks', () => {
  test('nothing is known before the first answer', () => {
    const { skew } = compared(0);
    expect([skew.bounds, skew.estimateMs, skew.judge(1_000)]).toEqual([undefined, undefined, 'unsure']);
  });

  test('one answer bounds it to a second and the time that it took; more bound it closely', async () => {
    const made = compared(300, 1_700_000_000_450);
    await made.ask(20, 30);
    expect(widthOf(made)).toBe(1_050);
    for (let answers = 0; answers < 10; answers++) {
      await made.clock.advance(230);
      await made.ask(5, 5);
    }
    expect(widthOf(made)).toBeLessThan(260);
    expect(Math.abs((made.skew.estimateMs ?? 0) - 300)).toBeLessThan(130);
  });

  test('whatever the answers, the truth is within the bounds', async () => {
    const difference = fc.integer({ min: -5_000, max: 5_000 });
    const answers = fc.array(fc.tuple(fc.nat(1_500), fc.nat(400), fc.nat(400)), { minLength: 1, maxLength: 15 });
    await fc.assert(
      fc.asyncProperty(difference, fc.nat(999), answers, async (aheadMs, wallMs, asked) => {
        const { skew, clock, ask } = compared(aheadMs, 1_700_000_000_000 + wallMs);
        for (const [pauseMs, thereMs, backMs] of asked) {
          await clock.advance(pauseMs);
          await ask(thereMs, backMs);
          const { lowMs = 1, highMs = 0 } = skew.bounds ?? {};
          expect(lowMs).toBeLessThanOrEqual(aheadMs);
          expect(highMs).toBeGreaterThanOrEqual(aheadMs);
        }
      }),
      { numRuns: 100 },
    );
  });

  test('a clock that is set: what was known before counts no longer', async () => {
    const { skew, clock, ask, ahead } = compared(0);
    for (let answers = 0; answers < 10; answers++) {
      await ask();
      await clock.advance(230);
    }
    ahead(-7_300);
    await ask();
    expect((skew.bounds?.lowMs ?? 0) <= -7_300 && (skew.bounds?.highMs ?? 0) >= -7_300).toBe(true);
    for (let answers = 0; answers < 10; answers++) {
      await clock.advance(230);
      await ask();
    }
    expect(Math.abs((skew.estimateMs ?? 0) + 7_300)).toBeLessThan(130);
  });

  test('a clock that drifts is followed', async () => {
    const { skew, clock, ask, ahead } = compared(0);
    for (let step = 0; step < 300; step++) {
      ahead(step * 5);
      await clock.advance(1_130);
      await ask();
    }
    expect(Math.abs((skew.estimateMs ?? 0) - 299 * 5)).toBeLessThan(600);
  });
});

describe('the verdict', () => {
  /** Two machines may be 1 s apart, so each half a second from the store. */
  const apartMs = 1_000;

  test.each([
    ['in step', 0, 'within'],
    ['a little ahead', 240, 'within'],
    ['a little behind', -240, 'within'],
    ['ahead by more than half', 760, 'past'],
    ['behind by more than half', -760, 'past'],
    ['far ahead', 60_000, 'past'],
    ['far behind', -60_000, 'past'],
  ] as const)('%s: %i ms is %s', async (_what, aheadMs, verdict) => {
    const { skew, clock, ask } = compared(aheadMs, 1_700_000_000_123);
    for (let answers = 0; answers < 10; answers++) {
      await ask();
      await clock.advance(230);
    }
    expect(skew.judge(apartMs)).toBe(verdict);
  });

  test('one answer alone may leave it open', async () => {
    const { skew, ask } = compared(0, 1_700_000_000_500);
    await ask(300, 300);
    expect(skew.judge(apartMs)).toBe('unsure');
  });

  test('far off is seen by the first answer', async () => {
    const { skew, ask } = compared(5_000);
    await ask();
    expect(skew.judge(apartMs)).toBe('past');
  });
});
