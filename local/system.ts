/**
 * The whole deployed system on one machine. `npm start`, the demo, the end-to-end tests and the benches all run this one; what they need
 * of it are its handles: URLs, clients, and workers to add, kill and wait for.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { SQSClient } from '@aws-sdk/client-sqs';
import { configNames, readConfig } from '../shared/config.ts';
import { dynamodbClient, type Namespace, sqsClient } from './aws.ts';
import { baseEnvironment, LOCAL_API_KEY, workerEnvironment } from './environment.ts';
import { Fleet } from './fleet.ts';
import { type OnStep, type Parts, PartsStarter } from './parts.ts';
import { StateFile } from './state.ts';
import { taskStoppedEvent } from './task-event.ts';
import type { StoppedTask, WorkerProcess } from './worker-process.ts';

export interface SystemOptions {
  /** How many workers to start; default 2. */
  workers?: number;
  /** A source to dial; default true. */
  source?: boolean;
  /** The functions; default true. Without them, for suites that call the handlers themselves. */
  api?: boolean;
  /** Whether a worker that ends is started again, as ECS would; default true. */
  restartWorkers?: boolean;
  /** The configuration's variables, for workers and functions; default: the process's environment. */
  env?: NodeJS.ProcessEnv;
  /** Whether the reconciler hears of a worker's end as it would from ECS; default true. */
  reportStops?: boolean;
  /** For logs and `state.json`, below the project; default `.local`. Systems that run at the same time need one each. */
  dir?: string;
  /** Called around each step of the start. */
  onStep?: OnStep;
  /** A part ended unasked once it was up; the system is no longer whole. Default: the error is thrown as uncaught. */
  onDied?: (error: Error) => void;
  /** A worker's process ended, asked or not. */
  onTaskStopped?: (task: StoppedTask) => void;
}

const ROOT = join(import.meta.dirname, '..');

export class System {
  readonly #options: SystemOptions;
  readonly #env: Record<string, string>;
  readonly #logDir: string;
  readonly #stateFile: StateFile;
  readonly #onStep: OnStep;
  readonly #starter: PartsStarter;
  readonly #abort = new AbortController();
  readonly #background = new Set<Promise<void>>();
  #parts: Running | null = null;
  #complete = false;
  #stopping: Promise<void> | null = null;

  constructor(options: SystemOptions) {
    this.#options = options;
    this.#env = baseEnvironment(options.env ?? process.env);
    const dir = join(ROOT, options.dir ?? '.local');
    this.#logDir = join(dir, 'logs');
    this.#stateFile = new StateFile(join(dir, 'state.json'));
    this.#onStep = options.onStep ?? ((_name, step) => step());
    this.#starter = new PartsStarter({
      root: ROOT,
      logDir: this.#logDir,
      env: this.#env,
      withSource: options.source ?? true,
      withApi: options.api ?? true,
      onStep: this.#onStep,
      onDied: (error) => this.#died(error),
    });
  }

  get logDir(): string {
    return this.#logDir;
  }

  get apiUrl(): string {
    if (this.#up.api === null) throw new Error('this system was started without its API');
    return this.#up.api.url;
  }

  get apiKey(): string {
    return LOCAL_API_KEY;
  }

  get dynamodbUrl(): string {
    return this.#up.aws.dynamodbUrl;
  }

  get sqsUrl(): string {
    return this.#up.aws.sqsUrl;
  }

  get queueUrl(): string {
    return this.#up.namespace.queueUrl;
  }

  get deadLetterQueueUrl(): string {
    return this.#up.namespace.deadLetterQueueUrl;
  }

  get tables(): Namespace['tables'] {
    return this.#up.namespace.tables;
  }

  /** `ws://…`; a connection's URL is `${sourceUrl}/<id>?last_seq={last_seq}`. */
  get sourceUrl(): string {
    if (this.#up.source === null) throw new Error('this system was started without its source');
    return `ws://127.0.0.1:${this.#up.source.port}`;
  }

  get dynamodb(): DynamoDBClient {
    return this.#up.dynamodb;
  }

  get sqs(): SQSClient {
    return this.#up.sqs;
  }

  /** In the order in which they were added, ended ones too. */
  get workers(): readonly WorkerProcess[] {
    return this.#up.fleet.workers;
  }

  /** Pids by part, for those who measure CPU time or memory. */
  get pids(): { dynamodb: number; sqs: number; source: number | null; api: number | null } {
    const { aws, source, api } = this.#up;
    return {
      dynamodb: aws.dynamodb.pid,
      sqs: aws.sqs.pid,
      source: source?.pid ?? null,
      api: api?.service.pid ?? null,
    };
  }

  /** Starts everything, or nothing: what was up already is ended when a part fails. */
  async start(): Promise<void> {
    try {
      checkConfiguration(this.#env);
      // What an earlier run left would only be mistaken for this one's.
      await rm(this.#logDir, { recursive: true, force: true });
      const parts = await this.#starter.start();
      const { dynamodbUrl, sqsUrl } = parts.aws;
      const fleet = this.#fleet(parts);
      this.#parts = { ...parts, fleet, dynamodb: dynamodbClient(dynamodbUrl), sqs: sqsClient(sqsUrl) };
      // The schedule begins at the next full minute; until then this one sweeps.
      if (parts.api !== null) this.#inBackground(this.invoke('reconcile', { source: 'aws.events' }));
      const { workers = 2 } = this.#options;
      await this.#onStep(workers === 1 ? '1 worker' : `${workers} workers`, () => fleet.addMany(workers));
      this.#complete = true;
      await this.#writeState();
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** One more worker. @param env beside the common one, e.g. `AWS_ENDPOINT_URL_DYNAMODB` of a proxy */
  addWorker(env: Record<string, string> = {}): Promise<WorkerProcess> {
    return this.#up.fleet.add(env);
  }

  /** @param number counts from 1 */
  worker(number: number): WorkerProcess {
    return this.#up.fleet.worker(number);
  }

  killWorker(number: number, signal: NodeJS.Signals): void {
    this.worker(number).kill(signal);
  }

  /** Invokes a function as Lambda would. */
  async invoke(functionName: 'events' | 'status' | 'reconcile', event: unknown): Promise<unknown> {
    if (this.#up.api === null) throw new Error('this system was started without its API');
    return this.#up.api.invoke(functionName, event, this.#abort.signal);
  }

  /** The workers drain first, then the rest ends. Calling it again returns the first call's promise. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  /** For those who can't wait: every process ends now. */
  async stopNow(): Promise<void> {
    const stopped = this.stop();
    await this.#parts?.fleet.stopNow();
    await stopped;
  }

  get #up(): Running {
    if (this.#parts === null) throw new Error('the system is not up');
    return this.#parts;
  }

  #fleet({ aws, namespace }: Parts): Fleet {
    return new Fleet({
      root: ROOT,
      logDir: this.#logDir,
      env: workerEnvironment(this.#env, aws, namespace),
      restart: this.#options.restartWorkers ?? true,
      onChanged: () => {
        if (this.#complete) this.#inBackground(this.#writeState());
      },
      onTaskStopped: (task) => {
        this.#options.onTaskStopped?.(task);
        if (this.#complete && this.#parts?.api !== null && (this.#options.reportStops ?? true)) {
          this.#inBackground(this.invoke('reconcile', taskStoppedEvent(task)));
        }
      },
    });
  }

  async #stop(): Promise<void> {
    this.#abort.abort(new Error('the system is being stopped'));
    this.#complete = false;
    await this.#stateFile.remove();
    // A part that can't be stopped mustn't keep the others running.
    const results = [
      ...(await Promise.allSettled([this.#parts?.fleet.stop()])),
      ...(await Promise.allSettled([this.#starter.stop()])),
    ];
    this.#parts?.dynamodb.destroy();
    this.#parts?.sqs.destroy();
    await Promise.all(this.#background);
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    if (failures.length > 0) throw new AggregateError(failures, 'not everything could be stopped');
  }

  #died(error: Error): void {
    if (this.#stopping !== null) return;
    if (this.#options.onDied !== undefined) this.#options.onDied(error);
    else throw error;
  }

  async #writeState(): Promise<void> {
    const { aws, namespace, source, api, fleet } = this.#up;
    await this.#stateFile.write({
      apiUrl: api?.url ?? null,
      apiKey: LOCAL_API_KEY,
      lambdaUrl: api?.lambdaUrl ?? null,
      settings: settingsIn(workerEnvironment(this.#env, aws, namespace)),
      dynamodbUrl: aws.dynamodbUrl,
      sqsUrl: aws.sqsUrl,
      queueUrl: namespace.queueUrl,
      tables: namespace.tables,
      sourceUrl: source === null ? null : this.sourceUrl,
      workers: fleet.workers.flatMap(({ workerId: id, pid }) => (id === null || pid === null ? [] : [{ id, pid }])),
    });
  }

  #inBackground(work: Promise<unknown>): void {
    const done: Promise<void> = work
      .then(
        () => undefined,
        (error: unknown) => {
          if (this.#stopping === null) console.error(error);
        },
      )
      .finally(() => this.#background.delete(done));
    this.#background.add(done);
  }
}

interface Running extends Parts {
  fleet: Fleet;
  dynamodb: DynamoDBClient;
  sqs: SQSClient;
}

export async function startSystem(options: SystemOptions = {}): Promise<System> {
  const system = new System(options);
  await system.start();
  return system;
}

function settingsIn(env: Record<string, string>): Record<string, string> {
  const known = new Set<string>(configNames);
  return Object.fromEntries(Object.entries(env).filter(([name]) => known.has(name)));
}

/** Said here in one line, rather than by each worker and function in its log. */
function checkConfiguration(env: Record<string, string>): void {
  const later = 'known when it is there';
  const names = { CONNECTIONS_TABLE: later, WORKERS_TABLE: later, MESSAGES_TABLE: later, QUEUE_URL: later };
  const { logLevel } = readConfig({ ...env, ...names });
  if (logLevel !== 'info' && logLevel !== 'debug') {
    throw new Error(`LOG_LEVEL is ${logLevel}, but a worker's id is read from its log: use info or debug`);
  }
}
