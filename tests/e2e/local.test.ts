import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ApiClient } from '../../local/client.ts';
import { waitFor } from '../../local/measure.ts';
import { storedMessages } from '../../local/messages.ts';
import type { LocalState } from '../../local/state.ts';
import { type System, startSystem } from '../../local/system.ts';
import type { StoppedTask } from '../../local/worker-process.ts';

const DIR = '.local/e2e-local';
const STATE = join(import.meta.dirname, '..', '..', DIR, 'state.json');
const stopped: StoppedTask[] = [];
let system: System;

beforeAll(async () => {
  system = await startSystem({ workers: 1, dir: DIR, onTaskStopped: (task) => stopped.push(task) });
}, 60_000);

afterAll(() => system.stop(), 60_000);

const state = async (): Promise<LocalState> => JSON.parse(await readFile(STATE, 'utf8')) as LocalState;

describe('the local system', () => {
  test('takes a START through the API and stores what the source sends', async () => {
    const api = new ApiClient(system.apiUrl, system.apiKey);
    const { status } = await api.start('a', `${system.sourceUrl}/a?last_seq={last_seq}&rate=20`);
    expect(status).toBe(202);
    const messages = await waitFor('messages in the table', 10_000, async () => {
      const stored = await storedMessages(system.dynamodb, system.tables.messages, 'a');
      return stored.length >= 5 ? stored : null;
    });
    expect(messages[0]).toMatchObject({ seq: 1, workerId: system.worker(1).workerId });
  });

  test('refuses a wrong key', async () => {
    expect((await new ApiClient(system.apiUrl, 'not-the-key').fleet()).status).toBe(403);
  });

  test('reports the end of a worker, starts another one, and says so in its state file', async () => {
    const [before] = (await state()).workers;
    expect(before).toEqual({ id: system.worker(1).workerId, pid: system.worker(1).pid });
    system.killWorker(1, 'SIGKILL');
    const after = await waitFor('another worker in the state file', 20_000, async () => {
      const [worker] = (await state()).workers;
      return worker !== undefined && worker.id !== before?.id ? worker : null;
    });
    expect(after.pid).toBe(system.worker(1).pid);
    expect(stopped).toMatchObject([{ workerId: before?.id, pid: before?.pid, signal: 'SIGKILL', exitCode: null }]);
  });

  test('leaves nothing behind', async () => {
    const pids = [...Object.values(system.pids), system.worker(1).pid];
    expect(pids.every((pid) => pid !== null && isRunning(pid))).toBe(true);
    await system.stop();
    expect(pids.filter((pid) => pid !== null && isRunning(pid))).toEqual([]);
    await expect(readFile(STATE)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
