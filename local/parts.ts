/**
 * Everything of the local system but its workers: embedded DynamoDB and SQS with their tables and queue, the source, the functions. Started
 * side by side as far as one doesn't need the other, ended in reverse.
 */
import { join } from 'node:path';
import { type Api, startApi } from './api.ts';
import { type AwsServers, createNamespace, type Namespace, startAwsServers } from './aws.ts';
import { endpointEnvironment, NAMESPACE } from './environment.ts';
import { type PortService, startPortService } from './services.ts';
import { compileTemplate } from './template.ts';

export interface Parts {
  aws: AwsServers;
  namespace: Namespace;
  source: PortService | null;
  api: Api | null;
}

/** Runs a step of the start, and may say how it went. */
export type OnStep = <T>(name: string, step: () => Promise<T>) => Promise<T>;

export interface PartsOptions {
  root: string;
  logDir: string;
  env: Record<string, string>;
  withSource: boolean;
  withApi: boolean;
  onStep: OnStep;
  /** A part ended unasked once it was up. */
  onDied: (error: Error) => void;
}

type Stoppable = { stop(): Promise<void> };

export class PartsStarter {
  readonly #options: PartsOptions;
  readonly #abort = new AbortController();
  /** What is up or on its way up, in the order in which it was begun. */
  readonly #begun: Promise<Stoppable>[] = [];

  constructor(options: PartsOptions) {
    this.#options = options;
  }

  /** @throws when a part fails; `stop` then ends what was up already */
  async start(): Promise<Parts> {
    const { root, logDir, env, withSource, withApi, onStep, onDied } = this.#options;
    const { signal } = this.#abort;
    const [aws, template, source] = await allOrFirstError([
      this.#begin('DynamoDB and SQS', () => startAwsServers({ root, env, logDir, onDied })),
      onStep('template from serverless.yml', () => compileTemplate(root, env, signal)),
      withSource ? this.#begin('source', () => this.#startSource()) : null,
    ]);
    const namespace = await onStep('tables and queue', () => createNamespace(aws, NAMESPACE, template));
    signal.throwIfAborted();
    if (!withApi) return { aws, namespace, source, api: null };
    const functionEnv = { ...env, ...endpointEnvironment(aws) };
    const api = await this.#begin('API', () =>
      startApi({ root, logDir, env: functionEnv, queueUrl: namespace.queueUrl, signal, onDied }),
    );
    return { aws, namespace, source, api };
  }

  /** The functions end before what they use. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped before it was up'));
    for (const begun of this.#begun.toReversed()) {
      const [started] = await Promise.allSettled([begun]);
      if (started.status === 'fulfilled') await started.value.stop();
    }
  }

  #startSource(): Promise<PortService> {
    const { root, logDir, env, onDied } = this.#options;
    const script = join(import.meta.dirname, 'source.ts');
    const logFile = join(logDir, 'source.log');
    return startPortService({
      name: 'source',
      command: process.execPath,
      args: [script],
      env,
      cwd: root,
      logFile,
      onDied,
    });
  }

  /** A step that leaves something running. */
  #begin<T extends Stoppable>(name: string, start: () => Promise<T>): Promise<T> {
    const begun = this.#options.onStep(name, start);
    this.#begun.push(begun);
    return begun;
  }
}

/** Like `Promise.all`, but waits for all before it fails: nothing of a failed start goes on behind its back. */
export async function allOrFirstError<const T extends readonly unknown[]>(
  promises: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}
