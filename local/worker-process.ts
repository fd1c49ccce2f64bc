/**
 * One worker, looked after as ECS looks after a task of a service: its process gets a task ARN of its own, is restarted as a new task when
 * it ends, and each end is told. The worker knows nothing of it; what it is called is read from its log.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { LOCAL_REGION } from './environment.ts';
import { type Service, startService } from './services.ts';

export interface WorkerProcessOptions {
  /** Counts from 1; names the log file. */
  number: number;
  root: string;
  /** `worker/main.ts`, from `root`. */
  script: string;
  env: Record<string, string>;
  logDir: string;
  /** How long it gets to drain after SIGTERM before SIGKILL. */
  stopTimeoutMs: number;
  /** `false`: a worker that ended stays away. */
  restart: boolean;
  /** A process said its worker id: after a start, a restart, or when a fenced worker registers anew. */
  onIdentified(worker: { id: string; pid: number }): void;
  onTaskStopped(task: StoppedTask): void;
}

/** What ECS would report in "ECS Task State Change". */
export interface StoppedTask {
  taskArn: string;
  workerId: string | null;
  pid: number;
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  startedAtMs: number;
  stoppedAtMs: number;
}

/** As the Dockerfile starts it, with the heap that Node gives itself in a task of a gigabyte. */
const asInTheImage = ['--max-semi-space-size=8', '--max-old-space-size=512'];
const RESTART_MS = 500;
const RESTART_CAP_MS = 10_000;
/** A process that lived so long didn't fail to start. */
const HEALTHY_AFTER_MS = 10_000;

export class WorkerProcess {
  readonly #options: WorkerProcessOptions;
  #starting: Promise<void> | null = null;
  #service: Service | null = null;
  #workerId: string | null = null;
  #failures = 0;
  #restartTimer: NodeJS.Timeout | null = null;
  #stopping: Promise<void> | null = null;
  #waiting: { resolve: (id: string) => void; reject: (error: Error) => void }[] = [];

  constructor(options: WorkerProcessOptions) {
    this.#options = options;
  }

  get number(): number {
    return this.#options.number;
  }

  /** `null` while no process runs. */
  get pid(): number | null {
    return this.#service?.pid ?? null;
  }

  /** `null` until the running process has said it. */
  get workerId(): string | null {
    return this.#workerId;
  }

  get logFile(): string {
    return join(this.#options.logDir, `worker-${this.number}.log`);
  }

  /** Resolves with the worker's id once it has said it. @throws when its process ends before, or `withinMs` have passed */
  async identified(withinMs: number): Promise<string> {
    if (this.#workerId !== null) return this.#workerId;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const fail = (what: string): void => reject(new Error(`worker ${this.number} ${what}; its log is ${this.logFile}`));
    const timer = setTimeout(() => fail(`did not log worker.registered within ${withinMs} ms`), withinMs);
    this.#waiting.push({ resolve, reject: (error) => fail(error.message) });
    return promise.finally(() => clearTimeout(timer));
  }

  start(): Promise<void> {
    this.#starting = this.#start();
    return this.#starting;
  }

  /** Signals the process as the kernel or an operator would; the end that may follow is handled like any other. */
  kill(signal: NodeJS.Signals): void {
    if (this.#service === null) throw new Error(`worker ${this.number} isn't running`);
    this.#service.child.kill(signal);
  }

  /** Resolves at the end of the process that runs now, with how it ended. */
  async ended(): Promise<string> {
    return this.#service?.ended ?? 'not running';
  }

  /** SIGTERM, time to drain, and no restart. */
  stop(): Promise<void> {
    this.#stopping ??= (async () => {
      if (this.#restartTimer !== null) clearTimeout(this.#restartTimer);
      await this.#starting;
      // A frozen process can't drain; it would only use up its time.
      this.#service?.child.kill('SIGCONT');
      await this.#service?.stop(this.#options.stopTimeoutMs);
    })();
    return this.#stopping;
  }

  /** Ends it at once. */
  async stopNow(): Promise<void> {
    const stopped = this.stop();
    await this.#starting;
    this.#service?.child.kill('SIGKILL');
    await stopped;
  }

  async #start(): Promise<void> {
    const taskArn = `arn:aws:ecs:${LOCAL_REGION}:000000000000:task/holdfast-local/${randomBytes(16).toString('hex')}`;
    const startedAtMs = Date.now();
    const service = await startService({
      name: `worker ${this.number}`,
      command: process.execPath,
      args: [...asInTheImage, '--import', join(import.meta.dirname, 'parent-guard.ts'), this.#options.script],
      env: { ...this.#options.env, TASK_ARN: taskArn },
      cwd: this.#options.root,
      logFile: this.logFile,
    });
    this.#service = service;
    this.#workerId = null;
    this.#readIdentity(service);
    service.child.once('exit', (exitCode, signal) => {
      const stoppedAtMs = Date.now();
      const workerId = this.#workerId;
      this.#service = null;
      this.#workerId = null;
      const how = signal === null ? `exit code ${exitCode}` : signal;
      for (const { reject } of this.#waiting.splice(0)) reject(new Error(`ended before it was up (${how})`));
      this.#options.onTaskStopped({ taskArn, workerId, pid: service.pid, exitCode, signal, startedAtMs, stoppedAtMs });
      if (this.#options.restart && this.#stopping === null) this.#restartLater(stoppedAtMs - startedAtMs);
    });
  }

  #restartLater(livedMs: number): void {
    this.#failures = livedMs < HEALTHY_AFTER_MS ? this.#failures + 1 : 0;
    const delayMs = Math.min(RESTART_CAP_MS, RESTART_MS * 2 ** Math.max(0, this.#failures - 1));
    this.#restartTimer = setTimeout(() => {
      this.start().catch((error: unknown) => console.error(error));
    }, delayMs);
  }

  #readIdentity(service: Service): void {
    const { stdout } = service.child;
    if (stdout === null) return;
    createInterface({ input: stdout }).on('line', (line) => {
      const id = identifying.some((event) => line.includes(event)) ? workerIdIn(line) : null;
      if (id === null || this.#service !== service) return;
      this.#workerId = id;
      this.#options.onIdentified({ id, pid: service.pid });
      // Ready only then: one that started a moment earlier would take everything that comes in between.
      if (!line.includes(registered)) return;
      for (const { resolve } of this.#waiting.splice(0)) resolve(id);
    });
  }
}

/** A worker takes a fresh id after each fence, and says so when it registers under it. */
const registered = '"worker.registered"';
const identifying = ['"worker.started"', registered];

function workerIdIn(line: string): string | null {
  try {
    const entry = JSON.parse(line) as { worker_id?: unknown };
    return typeof entry.worker_id === 'string' ? entry.worker_id : null;
  } catch (error) {
    // Not every line of a process is its log.
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
