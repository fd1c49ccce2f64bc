import { expect, test } from '@jest/globals';
import { apart, wake } from '../../functions/wake.ts';
import type { WakeUp } from '../../shared/wakeup.ts';
import { countedMetrics, keptLog } from '../support/worker-parts.ts';

function queueWith(waiting: number) {
  const sent: string[] = [];
  const asked: number[] = [];
  const queue = {
    send: (wakeUp: WakeUp) => Promise.resolve(void sent.push(wakeUp.pk)),
    depth: () => Promise.resolve(asked.push(waiting) && waiting),
  };
  return { parts: { queue, metrics: countedMetrics(), log: keptLog(), random: () => 0 }, sent, asked };
}

const left = (owner: string, ...ids: string[]): WakeUp[] =>
  ids.map((id) => ({ pk: `CONN#${id}`, after: { owner, epoch: 1 } }));

test('what was left just now is woken up whatever the queue holds, and it isn’t asked', async () => {
  const { parts, sent, asked } = queueWith(1000);
  const woken = await wake(parts, { fresh: left('w-1', 'a', 'b'), others: [] }, false);
  expect(woken).toEqual({ sent: 2, skipped: 0, failed: 0, why: null });
  expect([sent, asked]).toEqual([['CONN#a', 'CONN#b'], []]);
});

test('of the others, as many as don’t wait already', async () => {
  const { parts, sent } = queueWith(2);
  const woken = await wake(parts, { fresh: left('w-1', 'a'), others: left('w-0', 'b', 'c', 'd') }, false);
  expect(woken).toMatchObject({ sent: 2, skipped: 2, why: 'wake-ups that the queue already holds: 2' });
  expect(sent).toEqual(['CONN#a', 'CONN#b']);
});

test('a dry run sends nothing', async () => {
  const { parts, sent } = queueWith(0);
  const woken = await wake(parts, { fresh: left('w-1', 'a'), others: left('w-0', 'b') }, true);
  expect(woken).toEqual({ sent: 0, skipped: 2, failed: 0, why: 'dry run' });
  expect(sent).toEqual([]);
});

test('fresh is what a worker left that was found dead just now', () => {
  const wakeUps = [...left('w-1', 'a'), ...left('w-0', 'b'), { pk: 'CONN#c' }];
  expect(apart(wakeUps, ['w-1'])).toEqual({ fresh: [wakeUps[0]], others: [wakeUps[1], wakeUps[2]] });
});
