import { spawn } from 'node:child_process';

export type Ran = { code: number; stdout: string /** The last lines of both streams, as they came. */; tail: string[] };

type Options = { cwd?: string; input?: string; env?: Record<string, string>; onLine?: (line: string) => void };

const tailLines = 25;

/** @returns undefined when there is no such program */
export async function run(command: string, args: string[], options: Options = {}): Promise<Ran | undefined> {
  const { cwd, input, env, onLine } = options;
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  const tail: string[] = [];
  let stdout = '';
  const keep = (line: string) => {
    tail.push(line);
    if (tail.length > tailLines) tail.shift();
    onLine?.(line);
  };
  const flushes = [child.stdout, child.stderr].map((stream) => {
    let rest = '';
    stream.setEncoding('utf8').on('data', (text: string) => {
      if (stream === child.stdout) stdout += text;
      const lines = (rest + text).split(/\r?\n|\r/);
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.trim() !== '') keep(line);
    });
    return () => {
      if (rest.trim() !== '') keep(rest);
    };
  });
  // A program that fails before it reads its input closes the pipe; what it says tells more than EPIPE.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'EACCES') resolve(undefined);
      else reject(error);
    });
    child.once('close', (code, signal) => {
      for (const flush of flushes) flush();
      if (signal !== null) tail.push(`ended by ${signal}`);
      resolve({ code: code ?? 1, stdout, tail });
    });
  });
}
