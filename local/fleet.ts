/** The workers of the local system, as an ECS service has its tasks: each from the same definition, more to be added, all drained at the end. */
import { join } from 'node:path';
import { allOrFirstError } from './parts.ts';
import { type StoppedTask, WorkerProcess } from './worker-process.ts';

export interface FleetOptions {
  root: string;
  logDir: string;
  env: Record<string, string>;
  restart: boolean;
  /** A worker has another id or pid than before, or none. */
  onChanged: () => void;
  onTaskStopped: (task: StoppedTask) => void;
}

const IDENTIFIED_WITHIN_MS = 30_000;
const DEFAULT_STOP_TIMEOUT_SECONDS = 120;

export class Fleet {
  readonly #options: FleetOptions;
  readonly #workers: WorkerProcess[] = [];
  #stopping = false;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  /** In the order in which they were added, ended ones too. */
  get workers(): readonly WorkerProcess[] {
    return this.#workers;
  }

  /** @param number counts from 1 */
  worker(number: number): WorkerProcess {
    const worker = this.#workers[number - 1];
    if (worker === undefined) throw new Error(`there is no worker ${number}`);
    return worker;
  }

  /** @param count started side by side */
  async addMany(count: number): Promise<void> {
    await allOrFirstError(Array.from({ length: count }, () => this.add({})));
  }

  /** Resolves when the worker has said its id. @param env beside what all have */
  async add(env: Record<string, string>): Promise<WorkerProcess> {
    if (this.#stopping) throw new Error('the system is being stopped');
    const { root, logDir, restart, onChanged, onTaskStopped } = this.#options;
    const worker = new WorkerProcess({
      number: this.#workers.length + 1,
      root,
      logDir,
      script: join('worker', 'main.ts'),
      env: { ...this.#options.env, ...env },
      stopTimeoutMs: Number(this.#options.env.STOP_TIMEOUT ?? DEFAULT_STOP_TIMEOUT_SECONDS) * 1000,
      restart,
      onIdentified: onChanged,
      onTaskStopped: (task) => {
        onTaskStopped(task);
        onChanged();
      },
    });
    this.#workers.push(worker);
    await worker.start();
    await worker.identified(IDENTIFIED_WITHIN_MS);
    return worker;
  }

  /** All drain side by side. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await allOrFirstError(this.#workers.map((worker) => worker.stop()));
  }

  async stopNow(): Promise<void> {
    this.#stopping = true;
    await allOrFirstError(this.#workers.map((worker) => worker.stopNow()));
  }
}
