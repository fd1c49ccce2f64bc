import { execFile } from 'node:child_process';
import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { isAlive, touch } from '../../../worker/health.ts';

let dir: string;
const file = () => join(dir, 'alive');

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'holdfast-health-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

describe('a worker', () => {
  test('is alive for some heartbeats after it said so', async () => {
    touch(file(), 1_000_000);
    await utimes(file(), 1_000, 1_000);
    expect([0, 29_999, 30_000].map((later) => isAlive(file(), 1_000_000 + later, 5_000))).toEqual([true, true, false]);
  });

  test('that has never said anything isn’t', () => {
    expect(isAlive(join(dir, 'nobody'), 0, 5_000)).toBe(false);
  });

  test('without a file to touch says nothing', () => {
    expect(() => touch(undefined, 0)).not.toThrow();
  });
});

describe('the container’s health check', () => {
  const check = (health: Record<string, string>): Promise<number> => {
    const env = {
      ...process.env,
      CONNECTIONS_TABLE: 'c',
      WORKERS_TABLE: 'w',
      MESSAGES_TABLE: 'm',
      QUEUE_URL: 'http://127.0.0.1:9/q',
      ...health,
    };
    const script = join(import.meta.dirname, '..', '..', '..', 'worker', 'health.ts');
    return promisify(execFile)(process.execPath, [script, '--check'], { env }).then(
      () => 0,
      (fault: { code: number }) => fault.code,
    );
  };

  test('tells by its exit code', async () => {
    touch(file(), Date.now());
    const codes = await Promise.all([
      check({ HEALTH_FILE: file() }),
      check({ HEALTH_FILE: join(dir, 'nobody') }),
      check({ HEALTH_FILE: '' }),
    ]);
    expect(codes).toEqual([0, 1, 1]);
  });
});
