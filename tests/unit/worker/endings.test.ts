import { describe, expect, test } from '@jest/globals';
import type { Connection } from '../../../shared/connection.ts';
import { type Ending, releaseFor, wakesUp } from '../../../worker/endings.ts';

const now = { status: { status: 'OPEN', attempts: 2 } as const, generation: 3, nowMs: 1_000 };
const endings: Record<string, Ending> = {
  stopped: { why: 'stopped' },
  drained: { why: 'drained' },
  lost: { why: 'lost', loss: 'refused' },
  failed: { why: 'failed', reason: 'HTTP 403', attempts: 3 },
  exhausted: { why: 'exhausted', reason: 'closed', attempts: 10, waitMs: 7_000 },
};
const ending = (why: string): Ending => endings[why] as Ending;

describe('what an ending leaves in the item', () => {
  test.each([
    ['lost', undefined],
    ['stopped', { status: { status: 'CLOSED', attempts: 0 } }],
    ['drained', { status: { status: 'PENDING', attempts: 2 } }],
    ['failed', { status: { status: 'FAILED', reason: 'HTTP 403', attempts: 3 }, failedGeneration: 3 }],
    ['exhausted', { status: { status: 'RETRYING', reason: 'closed', attempts: 10 }, notBeforeMs: 8_000 }],
  ])('%s', (why, left) => {
    expect(releaseFor(ending(why), now)).toEqual(left);
  });
});

describe('who is woken up afterwards', () => {
  const item = (change: Partial<Connection>): Connection => ({
    pk: 'CONN#a',
    desiredState: 'STARTED',
    wsUrl: 'ws://source/a',
    source: { name: 'plain' },
    generation: 3,
    leaseExpiresAtMs: 0,
    leaseEpoch: 7,
    status: 'PENDING',
    attempts: 0,
    createdAtMs: 0,
    updatedAtMs: 0,
    ...change,
  });

  test.each([
    ['drained', 'still wanted', item({}), true],
    ['drained', 'stopped meanwhile', item({ desiredState: 'STOPPED' }), false],
    ['drained', 'nobody knows: its answer is missing', undefined, true],
    ['stopped', 'stopped', item({ desiredState: 'STOPPED' }), false],
    ['stopped', 'started again meanwhile', item({}), true],
    ['stopped', 'nobody knows', undefined, true],
    ['failed', 'failed', item({ status: 'FAILED' }), false],
    ['failed', 'started anew meanwhile', item({}), true],
    ['failed', 'nobody knows', undefined, false],
    ['exhausted', 'not due yet', item({ status: 'RETRYING' }), false],
    ['exhausted', 'nobody knows', undefined, false],
    ['lost', 'nobody knows', undefined, false],
  ])('%s, %s', (why, _, after, wakes) => {
    expect(wakesUp(ending(why), after)).toBe(wakes);
  });
});
