/** moto, a second and independent AWS, where it is installed: `moto_server` as a child process on a port of its own. */
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createNamespace, dynamodbClient, type Namespace } from '../../local/aws.ts';
import { baseEnvironment } from '../../local/environment.ts';
import { compileTemplate } from '../../local/template.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const READY_WITHIN_MS = 60_000;

export interface Moto extends Namespace {
  readonly url: string;
  readonly dynamodb: DynamoDBClient;
  /** Its server takes requests in threads, without a lock. */
  readonly torn: true;
  stop(): Promise<void>;
}

export interface MotoServer {
  readonly url: string;
  stop(): Promise<void>;
}

export async function startMoto({ namespace }: { namespace: string }): Promise<Moto> {
  const server = await startMotoServer();
  const { url } = server;
  const dynamodb = dynamodbClient(url);
  const stop = async (): Promise<void> => {
    dynamodb.destroy();
    await server.stop();
  };
  try {
    const template = await compileTemplate(ROOT, baseEnvironment(process.env), new AbortController().signal);
    const made = await createNamespace({ dynamodbUrl: url, sqsUrl: url }, namespace, template);
    return { ...made, url, dynamodb, torn: true, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** With nothing in it. */
export async function startMotoServer(): Promise<MotoServer> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  // The account of the embedded SQS, which the queue's attributes name.
  const env = { ...process.env, MOTO_ACCOUNT_ID: '000000000000' };
  const child = spawn('moto_server', ['-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore', env });
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  const stop = async (): Promise<void> => {
    child.kill();
    await ended;
  };
  try {
    await answers(url, ended);
    return { url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function answers(url: string, ended: Promise<string>): Promise<void> {
  const giveUp = new AbortController();
  const late = sleep(READY_WITHIN_MS, 'no answer in time', { signal: giveUp.signal });
  let over: string | undefined;
  void Promise.race([ended, late]).then(
    (how) => {
      over = how;
    },
    () => undefined,
  );
  try {
    while (!(await isUp(url))) {
      if (over !== undefined) throw new Error(`moto_server did not start: ${over}`);
      await sleep(100);
    }
  } finally {
    giveUp.abort();
  }
}

async function isUp(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/moto-api/`)).ok;
  } catch {
    return false; // not listening yet
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await new Promise<number>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(address === null || typeof address === 'string' ? 0 : address.port);
    });
  });
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
