import { describe, expect, test } from '@jest/globals';
import { judge } from '../../../cli/connection.ts';
import { drain, type Progress, workerCalled } from '../../../cli/drain.ts';
import { drainedExitCode } from '../../../cli/drain-text.ts';
import { CliError, exitCodes } from '../../../cli/exit.ts';
import { explained } from '../../../cli/faults.ts';
import { messagesText, messageView } from '../../../cli/messages.ts';
import type { Target } from '../../../cli/target.ts';
import { duration, oneLine } from '../../../cli/text.ts';
import { frame, watch } from '../../../cli/watch.ts';
import type { Connection } from '../../../shared/connection.ts';
import type { WorkerReport } from '../../../shared/tables/workers.ts';
import { settled, VirtualClock } from '../../support/virtual-clock.ts';

const now = Date.UTC(2030, 0, 1);
const report = (workerId: string, given: Partial<WorkerReport> = {}): WorkerReport => ({
  workerId,
  leaseExpiresAtMs: now + 1000,
  held: 1,
  capacity: 10,
  draining: false,
  revision: '1',
  taskArn: undefined,
  startedAtMs: 0,
  ...given,
});
const item = (given: Partial<Connection> = {}): Connection => ({
  pk: 'CONN#a',
  desiredState: 'STARTED',
  wsUrl: 'ws://source/a',
  source: { name: 'plain' },
  generation: 1,
  leaseExpiresAtMs: 0,
  leaseEpoch: 1,
  status: 'PENDING',
  attempts: 0,
  createdAtMs: 0,
  updatedAtMs: now,
  ...given,
});

describe('a connection', () => {
  const leased = { leaseOwner: 'w-1', leaseExpiresAtMs: now + 1000 };
  test.each<[string, Partial<Connection>, WorkerReport | undefined, string, boolean]>([
    ['held', leased, report('w-1'), 'w-1 has it', false],
    ['being handed over', leased, report('w-1', { draining: true }), 'handing over', false],
    [
      'left by a dead worker, under a lease that runs on',
      leased,
      report('w-1', { expiredAtMs: now }),
      'is dead since',
      true,
    ],
    ['whose lease has run out', { leaseOwner: 'w-1', leaseExpiresAtMs: now }, undefined, 'has run out', true],
    ['that nobody has taken', {}, undefined, 'no worker has taken it yet', true],
    ['that waits for its next try', { leaseExpiresAtMs: now + 5000 }, undefined, 'its next try is due', false],
    ['that was given up', { status: 'FAILED', statusReason: 'HTTP 403' }, undefined, 'given up: HTTP 403', false],
    ['that is stopped', { desiredState: 'STOPPED' }, undefined, 'nobody wants it', false],
  ])('%s', (_what, given, owner, about, orphan) => {
    const judged = judge(item(given), owner, now);
    expect([judged.about, judged.orphan]).toEqual([expect.stringContaining(about), orphan]);
  });
});

describe('a worker is called', () => {
  const workers = [
    report('w-aaaa-1'),
    report('w-aaaa-2'),
    report('w-bbbb-1'),
    report('w-dead-1', { expiredAtMs: now }),
  ];
  const called = (given: string) => workerCalled({ workers: { all: async () => workers } as Target['workers'] }, given);

  test('by its id, or a beginning that fits no other', async () => {
    expect((await called('w-aaaa-1')).workerId).toBe('w-aaaa-1');
    expect((await called('w-bbbb')).workerId).toBe('w-bbbb-1');
  });

  test.each([
    ['w-aaaa', 'the beginning of several'],
    ['w-b', 'too little'],
    ['w-dead-1', 'no living worker'],
    ['w-nobody', 'no living worker'],
  ])('%s: not', async (given, message) => {
    await expect(called(given)).rejects.toThrow(message);
  });
});

describe('draining', () => {
  /** A worker that hands one connection over at each look, and then ends. */
  function handingOver(pks: string[], onward: string | undefined) {
    const left = [...pks];
    const clock = new VirtualClock(now);
    let stopped = false;
    const target = {
      clock,
      stopWorker: async () => {
        stopped = true;
        return 'told to stop';
      },
      connections: {
        ownedBy: async () => {
          const rows = left.map((pk) => ({ pk, desiredState: 'STARTED' as const, generation: 1, leaseEpoch: 1 }));
          if (stopped) left.shift();
          return { rows, next: undefined };
        },
        getAll: async (asked: string[]) =>
          asked.map((pk) => item({ pk, leaseOwner: left.includes(pk) ? 'w-1' : onward })),
      },
      workers: { get: async () => report('w-1', left.length === 0 ? { expiredAtMs: now } : { draining: true }) },
    } as unknown as Target;
    return { target, clock };
  }

  async function drained(pks: string[], onward: string | undefined, timeoutMs: number) {
    const { target, clock } = handingOver(pks, onward);
    const seen: Progress[] = [];
    const done = drain(target, report('w-1'), timeoutMs, (progress) => seen.push(progress));
    for (let look = 0; look < 60; look++) await clock.advance(500);
    return { ...(await done), seen };
  }

  test('shows how it goes down, and says where everything went', async () => {
    const outcome = await drained(['CONN#a', 'CONN#b'], 'w-2', 60_000);
    expect(outcome).toMatchObject({ held: 2, left: 0, gone: true, moved_to: { 'w-2': 2 }, waiting: [] });
    expect(outcome.seen.map(({ left }) => left)).toEqual([2, 1, 0]);
    expect(drainedExitCode(outcome)).toBe(exitCodes.fine);
  });

  test('what nobody takes is named', async () => {
    const outcome = await drained(['CONN#a'], undefined, 60_000);
    expect(outcome).toMatchObject({ left: 0, gone: true, waiting: ['a'] });
    expect(drainedExitCode(outcome)).toBe(exitCodes.trouble);
  });

  test('doesn’t look on for ever', async () => {
    const outcome = await drained(
      Array.from({ length: 9 }, (_, i) => `CONN#${i}`),
      'w-2',
      1000,
    );
    expect(outcome.left).toBeGreaterThan(0);
    expect(drainedExitCode(outcome)).toBe(exitCodes.trouble);
  });
});

describe('messages', () => {
  const stored = { key: '1', binary: true, complete: true, timestampMs: now, workerId: 'w-1', epoch: 1 };

  test('bytes that are text are shown as text, others by their length', () => {
    const text = messageView({ ...stored, data: Buffer.from('{"a":"ä"}') });
    expect([text.encoding, text.data]).toEqual(['text', '{"a":"ä"}']);
    const bytes = messageView({ ...stored, data: Buffer.from([0xff, 0, 1]), complete: false });
    expect([bytes.encoding, bytes.data]).toEqual(['base64', '/wAB']);
    expect(messagesText([bytes], 80)).toMatch(/\(3 bytes, not text\) \(a part is missing\)/);
  });

  test('nothing of a source gets at the terminal', () => {
    expect(oneLine('a\u001b[2Jb\r\nc', 80)).toBe('a [2Jb c');
    expect(oneLine('x'.repeat(100), 10)).toBe(`${'x'.repeat(9)}…`);
  });
});

test('durations have two units at most', () => {
  expect([0, 999, 61_000, 3_600_000, 90_061_000].map(duration)).toEqual(['0 s', '1 s', '1 min 1 s', '1 h', '1 d 1 h']);
});

describe('watching', () => {
  test('a turn is one write that clears nothing before it, as wide and high as the terminal', () => {
    const text = frame('\u001b[31mabcdef\u001b[39m\n2\n3', { columns: 4, rows: 2 });
    expect(text).toBe('\u001b[H\u001b[31mabcd\u001b[39m\u001b[K\r\n2\u001b[K\u001b[J');
  });

  test('goes on when one look fails, and leaves the terminal as it was', async () => {
    const clock = new VirtualClock();
    const written: string[] = [];
    const screen = { write: (text: string) => written.push(text) > 0, isTTY: true, columns: 80, rows: 24 };
    const stop = new AbortController();
    let looks = 0;
    const show = async () => {
      if (++looks === 2) throw new Error('away');
      return `look ${looks}`;
    };
    const watching = watch(screen, clock, 1000, stop.signal, show, () => 'trouble');
    await clock.advance(2000);
    stop.abort();
    await watching;
    await settled();
    expect(written.map((text) => /look \d|trouble/.exec(text)?.[0] ?? text)).toEqual([
      '\u001b[?1049h\u001b[?25l',
      'look 1',
      'trouble',
      'look 3',
      '\u001b[?25h\u001b[?1049l',
    ]);
  });
});

describe('faults', () => {
  const named = (name: string, message = 'x') => Object.assign(new Error(message), { name });
  test.each([
    [named('CredentialsProviderError'), /no AWS credentials/, /AWS_PROFILE/],
    [named('ExpiredTokenException'), /expired/, /log in again/],
    [
      named('AccessDeniedException', 'not authorized to perform: dynamodb:Scan'),
      /dynamodb:Scan/,
      /lack that permission/,
    ],
    [new Error('Region is missing'), /which region/, /--region/],
    [Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }), /nobody answers/, /npm start/],
  ])('%s: what is wrong, and what to do', (fault, message, fix) => {
    const said = explained(fault);
    expect([said.message, said.fix]).toEqual([expect.stringMatching(message), expect.stringMatching(fix)]);
  });

  test('what is not known is said as it is', () => {
    expect(explained(new TypeError('odd'))).toEqual(new CliError('TypeError: odd'));
  });
});
