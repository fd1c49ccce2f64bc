import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { waitFor } from '../../local/measure.ts';
import { type Rig, startRig } from '../support/e2e.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('capacity', { workers: 1, env: { MAX_CONNECTIONS: '3' } });
  rig.keepSweeping();
}, 90_000);
afterAll(() => rig?.stop(), 60_000);

const openNow = async () => {
  const { connections } = await rig.source.report();
  return connections.filter(({ open }) => open > 0).map(({ id }) => id);
};

describe('a worker that is full', () => {
  const wanted = ['one', 'two', 'three', 'four'];

  test('leaves the next one to others, and takes it as soon as there is room', async () => {
    await Promise.all(wanted.map((id) => rig.start(id)));
    const open = await waitFor('three open', 10_000, async () => {
      const now = await openNow();
      return now.length === 3 ? now : null;
    });
    const [waiting] = wanted.filter((id) => !open.includes(id));
    const item = await rig.item(waiting ?? '');
    expect(item).toMatchObject({ leaseOwner: undefined, status: 'PENDING' });

    await rig.wishes.stop(open[0] ?? '');
    await rig.allOpen([waiting ?? '', ...open.slice(1)]);
    expect((await openNow()).length).toBe(3);
  });

  test('another worker takes what there is no room for', async () => {
    const [stopped] = wanted.filter((id) => id !== undefined);
    const missing = (await Promise.all(wanted.map((id) => rig.item(id)))).find(
      ({ desiredState }) => desiredState === 'STOPPED',
    );
    const id = missing?.pk.slice('CONN#'.length) ?? stopped ?? '';
    await rig.addWorker();
    await rig.start(id);
    await rig.allOpen(wanted);
    for (const one of wanted) expect((await rig.seen(one)).maxOpen).toBe(1);
  });
});

describe('a configuration that can’t work', () => {
  /** A worker that shall not even begin. */
  function run(env: Record<string, string>): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const given = {
      CONNECTIONS_TABLE: 'c',
      WORKERS_TABLE: 'w',
      MESSAGES_TABLE: 'm',
      QUEUE_URL: 'http://127.0.0.1:9/q',
    };
    const script = join(import.meta.dirname, '..', '..', 'worker', 'main.ts');
    const child = spawn(process.execPath, [script], { env: { PATH: process.env.PATH, ...given, ...env } });
    const output = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk: Buffer) => {
      output.stdout += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      output.stderr += chunk.toString();
    });
    return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...output })));
  }

  test.each([
    [
      { LEASE_SECONDS: '6', HEARTBEAT_EVERY: '3' },
      /^holdfast worker: HEARTBEAT_EVERY \(3\) must be under a third of .*\n$/,
    ],
    [{ QUEUE_URL: '' }, /^holdfast worker: QUEUE_URL: .*\n$/],
    [{ MAX_CONNECTIONS: 'many' }, /^holdfast worker: MAX_CONNECTIONS: .*\n$/],
  ])('%j: exit code 2, and one line that says why', async (env, line) => {
    const { code, stdout, stderr } = await run(env);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(line);
  });
});
