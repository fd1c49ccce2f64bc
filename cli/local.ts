import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { readConfig } from '../shared/config.ts';
import { clientsFor } from './clients.ts';
import { CliError } from './exit.ts';
import { type Target, targetOf } from './target.ts';

export const defaultStateFile = join(import.meta.dirname, '..', '.local', 'state.json');

const startIt = 'start it with `npm start`';

/** What local/state.ts writes, as far as it matters here. */
const stateSchema = z.object({
  dynamodbUrl: z.string(),
  sqsUrl: z.string(),
  lambdaUrl: z.string().nullable(),
  settings: z.record(z.string(), z.string()),
  workers: z.array(z.object({ id: z.string(), pid: z.number() })),
});

/** The system that `npm start` runs on this machine. */
export async function openLocal(stateFile: string): Promise<Target> {
  const state = await readState(stateFile);
  return targetOf({
    title: 'the local system',
    clients: clientsFor({
      region: 'us-east-1',
      // Whoever needs the functions is told that there are none by nobody answering there.
      endpoints: { dynamodb: state.dynamodbUrl, sqs: state.sqsUrl, lambda: state.lambdaUrl ?? 'http://127.0.0.1:9' },
      // The embedded services take any.
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    }),
    config: readConfig(state.settings),
    reconcileFunction: 'holdfast-local-reconcile',
    async stopWorker({ workerId }) {
      // Read again: it is rewritten whenever a worker has another id or process.
      const { workers } = await readState(stateFile);
      const pid = workers.find(({ id }) => id === workerId)?.pid;
      if (pid === undefined) throw new CliError(`no process here runs ${workerId}`, '`status` shows who is alive');
      process.kill(pid, 'SIGTERM');
      return `its process ${pid} got SIGTERM, and another one is started`;
    },
  });
}

async function readState(file: string) {
  try {
    return stateSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch (fault) {
    if (fault instanceof Error && 'code' in fault && fault.code === 'ENOENT') {
      throw new CliError('the local system is not running', `${startIt}, or name a deployed --stage`);
    }
    if (fault instanceof z.ZodError)
      throw new CliError(`${file} is of another version`, `end that system and ${startIt}`);
    throw fault;
  }
}
