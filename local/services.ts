/**
 * Child processes of the local system: started in a process group of their own (a Ctrl-C in the terminal is for the parent alone, which
 * then ends them in order), output to a log file each, an error that names the part and its log when one ends unasked.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface ServiceOptions {
  /** How it is called in messages to people. */
  name: string;
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd: string;
  logFile: string;
  /** Called when it ends without having been asked to. */
  onDied?: (error: Error) => void;
}

export interface Service {
  readonly name: string;
  readonly pid: number;
  readonly child: ChildProcess;
  /** Resolves when the process has ended, however it did. */
  readonly ended: Promise<string>;
  /** SIGTERM to its group, SIGKILL after `graceMs`. Calling it again returns the first call's promise. */
  stop(graceMs?: number): Promise<void>;
}

export interface PortService extends Service {
  readonly port: number;
}

const DEFAULT_GRACE_MS = 5_000;
const READY_WITHIN_MS = 20_000;

export async function startService(options: ServiceOptions): Promise<Service> {
  await mkdir(dirname(options.logFile), { recursive: true });
  const log = createWriteStream(options.logFile, { flags: 'a' });
  const child = spawn(options.command, options.args, {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  child.stdout?.pipe(log, { end: false });
  child.stderr?.pipe(log, { end: false });
  let stopping: Promise<void> | null = null;
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
  void ended.then((how) => {
    log.end();
    if (stopping === null) options.onDied?.(new Error(`${options.name} ended (${how}); its log is ${options.logFile}`));
  });
  return {
    name: options.name,
    pid: child.pid ?? -1,
    child,
    ended,
    stop(graceMs = DEFAULT_GRACE_MS) {
      stopping ??= stopGroup(child, ended, graceMs);
      return stopping;
    },
  };
}

/** For the services of this folder that say their port when they answer (`ready.ts`). */
export async function startPortService(options: ServiceOptions): Promise<PortService> {
  const service = await startService(options);
  const port = await new Promise<number>((resolve, reject) => {
    const failed = (how: string): void => reject(new Error(`${options.name} ${how}; its log is ${options.logFile}`));
    const timer = setTimeout(() => failed('did not answer in time'), READY_WITHIN_MS);
    void service.ended.then((how) => {
      clearTimeout(timer);
      failed(`did not start (${how})`);
    });
    service.child.once('message', (message: { port: number }) => {
      clearTimeout(timer);
      resolve(message.port);
    });
  }).catch(async (error: unknown) => {
    await service.stop(0);
    throw error;
  });
  return { ...service, port };
}

async function stopGroup(child: ChildProcess, ended: Promise<string>, graceMs: number): Promise<void> {
  signalGroup(child, 'SIGTERM');
  const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), graceMs);
  await ended;
  clearTimeout(timer);
  // What the process itself had started may outlive it.
  signalGroup(child, 'SIGKILL');
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    // Nobody left in the group: what was wanted.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
