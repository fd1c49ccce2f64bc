/** The code and the environment that were deployed, as they were: taken from where Lambda would take them. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { GetObjectCommand } from '@aws-sdk/client-s3';
import { unzipSync } from 'fflate';
import { baseEnvironment } from '../../../local/environment.ts';
import type { Account } from './account.ts';
import { deployedTemplate, madeResources } from './resources.ts';

export type Invoked = { value: unknown; loadMs: number };

export interface DeployedFunction {
  readonly bundleBytes: number;
  readonly environment: Record<string, string>;
  invoke(event: unknown): Promise<Invoked>;
  remove(): Promise<void>;
}

/**
 * @param name     of the function in serverless.yml
 * @param endpoint where AWS is
 */
export async function deployedFunction(
  aws: Account,
  stack: string,
  name: string,
  configuration: { handler: string | undefined; environment: Record<string, string> },
  endpoint: string,
): Promise<DeployedFunction> {
  const id = `${name.slice(0, 1).toUpperCase()}${name.slice(1)}LambdaFunction`;
  const { Properties } = (await deployedTemplate(aws, stack)).Resources[id] ?? {};
  const { S3Key: Key } = (Properties?.['Code'] ?? {}) as { S3Key?: string };
  const { ServerlessDeploymentBucket: Bucket } = await madeResources(aws, stack);
  const { Body } = await aws.s3.send(new GetObjectCommand({ Bucket, Key }));
  const files = unzipSync((await Body?.transformToByteArray()) ?? new Uint8Array());
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-function-'));
  for (const [file, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), content);
  }
  const [path = '', exported = ''] = /^(.*)\.([^.]+)$/.exec(configuration.handler ?? '')?.slice(1) ?? [];
  const environment = {
    ...baseEnvironment({ PATH: process.env['PATH'] }),
    ...configuration.environment,
    // A queue's URL names its host, and the SDK goes there: the emulated AWS is elsewhere.
    QUEUE_URL: configuration.environment['QUEUE_URL']?.replace(/^https?:\/\/[^/]+/, endpoint) ?? '',
    AWS_ENDPOINT_URL: endpoint,
  };
  return {
    bundleBytes: files[`${path}.mjs`]?.length ?? Number.NaN,
    environment: configuration.environment,
    invoke: (event) => invoke(join(folder, `${path}.mjs`), exported, environment, event),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

async function invoke(module: string, name: string, env: Record<string, string>, event: unknown): Promise<Invoked> {
  const options = {
    env,
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'] as ['ignore', 'ignore', 'inherit', 'ipc'],
  };
  const child = fork(join(import.meta.dirname, 'invoke.ts'), [module, name], options);
  const ended = once(child, 'exit');
  const answered = Promise.race([once(child, 'message'), ended.then(() => [{ fault: 'it ended without an answer' }])]);
  child.send(event as object);
  const [message] = (await answered) as [{ value?: unknown; fault?: string; loadMs?: number }];
  await ended;
  if (message.fault !== undefined) throw new Error(message.fault);
  return { value: message.value, loadMs: message.loadMs ?? Number.NaN };
}
