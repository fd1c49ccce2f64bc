/** `npm run fleet` as a process of its own, against the local system. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ApiClient, SourceClient } from '../../local/client.ts';
import { waitFor } from '../../local/measure.ts';
import { type System, startSystem } from '../../local/system.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const DIR = '.local/e2e-fleet-command';
const within = 20_000;

type Outcome = { code: number; out: string; err: string };

function fleet(...args: string[]): Promise<Outcome> {
  const all = [join('cli', 'fleet.ts'), '--local', '--state', join(ROOT, DIR, 'state.json'), ...args];
  return new Promise((resolve) => {
    execFile(process.execPath, all, { cwd: ROOT, env: { ...process.env, NO_COLOR: '1' } }, (fault, out, err) => {
      resolve({ code: fault === null ? 0 : Number(fault.code), out, err });
    });
  });
}

async function json<T>(...args: string[]): Promise<T & { code: number }> {
  const { code, out } = await fleet('--json', ...args);
  return { ...(JSON.parse(out) as T), code };
}

let system: System;
let api: ApiClient;

beforeAll(async () => {
  system = await startSystem({ workers: 2, dir: DIR });
  api = new ApiClient(system.apiUrl, system.apiKey);
  for (const id of ['a', 'b', 'c', 'd']) await api.start(id, `${system.sourceUrl}/${id}?last_seq={last_seq}&rate=10`);
  await waitFor('all of them open', within, async () => {
    const answers = await Promise.all(['a', 'b', 'c', 'd'].map((id) => api.connection(id)));
    return answers.every(({ body }) => (body as { status: string }).status === 'OPEN') ? true : null;
  });
}, 90_000);

afterAll(() => system?.stop(), 60_000);

type Status = {
  workers: { worker_id: string; held: number; state: string }[];
  connections: { STARTED: { count: number } };
  problems: string[];
};

describe('npm run fleet', () => {
  test('shows the fleet, for people and for scripts', async () => {
    const { code, out } = await fleet();
    expect([code, out]).toEqual([0, expect.stringContaining('✔ all that is wanted is held')]);
    expect(out).toContain(system.worker(1).workerId);
    const status = await json<Status>('status');
    expect(status).toMatchObject({ code: 0, problems: [], connections: { STARTED: { count: 4, more: false } } });
  });

  test('shows one connection and what was stored of it', async () => {
    const connection = await json<{ status: string; about: string; orphan: boolean }>('connection', 'a');
    expect(connection).toMatchObject({
      code: 0,
      status: 'OPEN',
      orphan: false,
      about: expect.stringContaining('has it'),
    });
    const { code, out } = await fleet('messages', 'a', '--last', '2');
    expect([code, out.trim().split('\n')]).toEqual([
      0,
      [expect.stringContaining('"seq":'), expect.stringContaining('"seq":')],
    ]);
    const unknown = await fleet('connection', 'never-started');
    expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining('there is no connection never-started')]);
  });

  test('drains a worker: its connections go to the other, and another one takes its place', async () => {
    const from = system.worker(1).workerId ?? '';
    const { held: before } = (await json<Status>()).workers.find(({ worker_id }) => worker_id === from) ?? { held: 0 };
    const drained = await json<{ held: number; moved_to: Record<string, number>; waiting: string[] }>(
      'drain',
      from.slice(0, 12),
    );
    expect(drained).toMatchObject({ code: 0, left: 0, gone: true, waiting: [] });
    expect(Object.values(drained.moved_to).reduce((sum, count) => sum + count, 0)).toBe(drained.held);
    expect(drained.held).toBeGreaterThanOrEqual(Math.min(before, 1));
    await waitFor('another worker', within, async () => {
      const { workerId } = system.worker(1);
      return workerId !== null && workerId !== from ? true : null;
    });
    expect((await fleet('drain', from)).code).toBe(1);
  });

  test('has the deployed reconciler look, and look only', async () => {
    expect(await json('reconcile', '--dry-run')).toMatchObject({ code: 0, dryRun: true, orphans: 0 });
    expect(await json('reconcile', '--connection', 'a')).toMatchObject({ code: 0, connectionId: 'a', state: 'owned' });
    expect(await json('reconcile', '--worker', 'w-nobody')).toMatchObject({ code: 0, worker: 'unknown' });
    expect((await fleet('reconcile', '--worker', 'w', '--connection', 'a')).code).toBe(2);
  });

  test('names what was given up, and why, with an exit code of its own', async () => {
    await new SourceClient(system.sourceUrl).control({ id: 'refused', refuseStatus: 403 });
    await api.start('refused', `${system.sourceUrl}/refused?last_seq={last_seq}`);
    const { out } = await waitFor('the refusal', within, async () => {
      const outcome = await fleet('connection', 'refused');
      return outcome.code === 4 ? outcome : null;
    });
    expect(out).toMatch(/refused +FAILED +given up: .*403/);
    const status = await json<{ failed: number; recent_failures: { connection_id: string }[] }>('status');
    expect(status).toMatchObject({ code: 4, failed: 1, recent_failures: [{ connection_id: 'refused' }] });
  });

  test('wrong usage is not an error of the fleet', async () => {
    expect((await fleet('frobnicate')).code).toBe(2);
    expect((await fleet('drain')).code).toBe(2);
    expect((await fleet('messages', 'a', '--last', 'x')).code).toBe(2);
    expect((await fleet('--help')).code).toBe(0);
  });
});

describe('without a local system', () => {
  test('says how to start it', async () => {
    const outcome = await new Promise<Outcome>((resolve) => {
      const args = [join('cli', 'fleet.ts'), '--local', '--state', '/nowhere/state.json'];
      execFile(process.execPath, args, { cwd: ROOT }, (fault, out, err) =>
        resolve({ code: Number(fault?.code ?? 0), out, err }),
      );
    });
    expect([outcome.code, outcome.err]).toEqual([1, expect.stringContaining('npm start')]);
  });
});
