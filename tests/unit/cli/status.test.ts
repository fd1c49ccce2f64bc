import { describe, expect, test } from '@jest/globals';
import { exitCodes } from '../../../cli/exit.ts';
import { exitCodeOf, patienceMs, problemsOf, type Status } from '../../../cli/status.ts';
import { statusText } from '../../../cli/status-text.ts';
import { configOf } from '../../support/worker-parts.ts';

const at = '2030-01-01T00:00:00.000Z';
const now = Date.parse(at);
const ago = (seconds: number) => new Date(now - seconds * 1000).toISOString();

const worker = (given: Partial<Status['workers'][number]> = {}): Status['workers'][number] => ({
  worker_id: 'w-1',
  state: 'alive',
  held: 350,
  capacity: 700,
  percent: 50,
  draining: false,
  revision: '000000000000.dkr.ecr.eu-west-1.amazonaws.com/holdfast-prod-worker:7f3a',
  task_arn: null,
  started_at: ago(7200),
  last_heartbeat: ago(2),
  gone_at: null,
  ...given,
});

const status = (given: Partial<Status> = {}): Status => ({
  fleet: 'holdfast-prod',
  at,
  workers: [worker()],
  totals: { workers: 1, held: 350, capacity: 700, percent: 50 },
  orphans: { count: 0, oldest_age_seconds: 0, connection_ids: [] },
  failed: 0,
  broken: [],
  queue: { wake_ups: 0 },
  waiting: { count: 0, hint: null },
  connections: {
    STARTED: { count: 350, more: false },
    STOPPED: { count: 10_000, more: true },
    FAILED: { count: 0, more: false },
  },
  recent_failures: [],
  problems: [],
  ...given,
});

const patience = 80_000;
const problems = (given: Partial<Status>) => problemsOf(status(given), patience, now);

describe('what needs somebody', () => {
  test('a takeover has a lease and a sweep of time', () => {
    expect(patienceMs({ config: configOf({ LEASE_SECONDS: '20', RECONCILE_EVERY: '60' }) })).toBe(80_000);
  });

  test('nothing, while orphans are young', () => {
    expect(problems({ orphans: { count: 3, oldest_age_seconds: 80, connection_ids: ['a', 'b', 'c'] } })).toEqual([]);
  });

  test.each<[string, Partial<Status>, RegExp]>([
    [
      'orphans that are older than that',
      { orphans: { count: 3, oldest_age_seconds: 81, connection_ids: [] } },
      /3 connections have no owner, the oldest for 81 s/,
    ],
    [
      'a full fleet, at once',
      {
        orphans: { count: 1, oldest_age_seconds: 1, connection_ids: [] },
        waiting: { count: 1, hint: 'all workers are full (7 of 7)' },
      },
      /all workers are full/,
    ],
    [
      'an item that nobody can read',
      { broken: [{ connection_id: 'b', message: 'ws_url: missing' }] },
      /b can't be read: ws_url/,
    ],
    [
      'a worker that nobody declares dead',
      { workers: [worker({ state: 'silent', last_heartbeat: ago(90) })] },
      /w-1 is silent/,
    ],
  ])('%s', (_what, given, text) => {
    expect(problems(given)).toEqual([expect.stringMatching(text)]);
  });

  test('not a worker that has been silent for a moment only', () => {
    expect(problems({ workers: [worker({ state: 'silent', last_heartbeat: ago(30) })] })).toEqual([]);
  });
});

test('exit codes: trouble before what was given up, and that before fine', () => {
  expect(exitCodeOf({ problems: ['x'], failed: 2 })).toBe(exitCodes.trouble);
  expect(exitCodeOf({ problems: [], failed: 2 })).toBe(exitCodes.failed);
  expect(exitCodeOf({ problems: [], failed: 0 })).toBe(exitCodes.fine);
});

describe('the status as text', () => {
  test('shows workers, how full, which version; connections; that all is well', () => {
    const text = statusText(status());
    expect(text).toMatch(/^holdfast-prod +1 worker, 350 of 700 held \(50 %\)/);
    expect(text).toMatch(/w-1 +alive +350 +██████░░░░░░ +50 % +holdfast-prod-worker:7f3a +2 h/);
    expect(text).toMatch(/350 +0 +10,000\+ +0 +0/);
    expect(text).toMatch(/✔ all that is wanted is held/);
  });

  test('shows who drains, who is gone, what has no owner, what was given up and why', () => {
    const text = statusText(
      status({
        workers: [worker({ draining: true }), worker({ worker_id: 'w-2', state: 'gone', held: 0, gone_at: ago(90) })],
        orphans: { count: 2, oldest_age_seconds: 65, connection_ids: ['o-1', 'o-2'] },
        failed: 1,
        recent_failures: [
          { connection_id: 'f-1', reason: 'handshake refused: HTTP 403', attempts: 1, failed_at: ago(5) },
        ],
      }),
    );
    expect(text).toMatch(/w-1 +draining/);
    expect(text).toMatch(/w-2 +gone .*gone 1 min 30 s ago/);
    expect(text).toMatch(/2, oldest 1 min 5 s/);
    expect(text).toMatch(/without owner: o-1, o-2/);
    expect(text).toMatch(/f-1 +handshake refused: HTTP 403 +1 +5 s/);
    expect(text).toMatch(/! 1 connection given up/);
  });

  test('a fleet without workers, and its problems', () => {
    const text = statusText(status({ workers: [], problems: ['something'] }));
    expect(text).toContain('no workers');
    expect(text).toMatch(/✘ something$/);
  });
});
