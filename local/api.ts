/**
 * The functions, as serverless-offline runs them from `serverless.yml` itself: the API with its key, and the schedule. They reach the
 * embedded DynamoDB and SQS through the SDK's own variables.
 */
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LOCAL_API_KEY } from './environment.ts';
import { type Service, startService } from './services.ts';
import { serverlessBin } from './template.ts';

export interface ApiOptions {
  root: string;
  env: Record<string, string>;
  queueUrl: string;
  logDir: string;
  signal: AbortSignal;
  onDied: (error: Error) => void;
}

export interface Api {
  readonly url: string;
  readonly key: string;
  /** Lambda's own API, for its clients. */
  readonly lambdaUrl: string;
  readonly service: Service;
  /** Invokes a function as Lambda would, and returns its answer. @throws when the function threw */
  invoke(functionName: 'events' | 'status' | 'reconcile', event: unknown, signal?: AbortSignal): Promise<unknown>;
  stop(): Promise<void>;
}

const READY_WITHIN_MS = 30_000;

export async function startApi(options: ApiOptions): Promise<Api> {
  const [httpPort, lambdaPort] = await freePorts(2);
  const url = `http://127.0.0.1:${httpPort}`;
  const logFile = join(options.logDir, 'api.log');
  // A build of its own: several local systems may run at the same time.
  const buildName = `api-${httpPort}`;
  const stop = async (): Promise<void> => {
    await service.stop();
    await rm(join(options.root, '.local', 'build', buildName), { recursive: true, force: true });
  };
  const service = await startService({
    name: 'API (serverless-offline)',
    command: process.execPath,
    args: [
      `--import=${join(import.meta.dirname, 'parent-guard.ts')}`,
      serverlessBin(options.root),
      'offline',
      '--stage=local',
      '--host=127.0.0.1',
      `--httpPort=${httpPort}`,
      `--lambdaPort=${lambdaPort}`,
      '--noPrependStageInUrl',
      '--noSponsor',
      // A thread for each request in flight would take the few cores of one machine from the workers.
      '--useInProcess',
    ],
    env: { ...options.env, QUEUE_URL: options.queueUrl, API_KEY: LOCAL_API_KEY, BUILD_NAME: buildName },
    cwd: options.root,
    logFile,
    onDied: options.onDied,
  });
  try {
    await answers(`${url}/fleet`, service, logFile, options.signal);
    // Loaded now, so that the first START isn't the one that waits for it.
    await fetch(`${url}/events`, { method: 'POST', headers: { 'x-api-key': LOCAL_API_KEY }, signal: options.signal });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url,
    key: LOCAL_API_KEY,
    lambdaUrl: `http://127.0.0.1:${lambdaPort}`,
    service,
    stop,
    async invoke(functionName, event, signal) {
      const path = `/2015-03-31/functions/holdfast-local-${functionName}/invocations`;
      const response = await fetch(`http://127.0.0.1:${lambdaPort}${path}`, {
        method: 'POST',
        body: JSON.stringify(event),
        ...(signal === undefined ? {} : { signal }),
      });
      const text = await response.text();
      if (!response.ok || response.headers.has('x-amz-function-error')) {
        throw new Error(`function ${functionName} failed (${response.status}): ${text}`);
      }
      return text === '' ? null : (JSON.parse(text) as unknown);
    },
  };
}

/** Up is when a function has answered: it was built and loaded, and reaches its tables. */
async function answers(url: string, service: Service, logFile: string, signal: AbortSignal): Promise<void> {
  const deadlineMs = Date.now() + READY_WITHIN_MS;
  let last = 'no answer';
  let failure: string | null = null;
  void service.ended.then((how) => {
    failure = how;
  });
  // It says so when a function can't be built, but goes on running.
  const listen = (chunk: Buffer): void => {
    if (/^Error:$/m.test(chunk.toString())) failure = 'it reports an error';
  };
  service.child.stdout?.on('data', listen);
  service.child.stderr?.on('data', listen);
  while (Date.now() < deadlineMs) {
    if (failure !== null) throw new Error(`${service.name} did not start (${String(failure)}); its log is ${logFile}`);
    try {
      const response = await fetch(url, { headers: { 'x-api-key': LOCAL_API_KEY }, signal });
      if (response.ok) {
        service.child.stdout?.off('data', listen);
        service.child.stderr?.off('data', listen);
        return;
      }
      last = `${response.status} ${await response.text()}`;
    } catch (error) {
      signal.throwIfAborted();
      last = error instanceof Error ? error.message : String(error);
    }
    await sleep(100, undefined, { signal });
  }
  throw new Error(`${service.name} does not answer ${url} (${last}); its log is ${logFile}`);
}

/** Held all at once, so that they differ. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.once('error', reject);
          server.listen(0, '127.0.0.1', () => {
            const address = server.address();
            resolve(address === null || typeof address === 'string' ? 0 : address.port);
          });
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))));
  return ports;
}
