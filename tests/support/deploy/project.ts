/** A copy of what is deployed, in a folder of its own: a deployment leaves files behind, and a test may change some. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serverlessBin } from '../../../local/template.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const DEPLOYED = [
  'functions',
  'shared',
  'sources',
  'worker',
  'deploy',
  'serverless.yml',
  'Dockerfile',
  '.dockerignore',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
];

export type Ended = { code: number; output: string; seconds: number };

export interface Project {
  readonly root: string;
  /** Runs `sls` there. It isn't a failure of the test's when that fails: the code is in the answer. */
  sls(args: string[], env: Record<string, string>): Promise<Ended>;
  remove(): Promise<void>;
}

export async function copyProject(): Promise<Project> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'holdfast-deploy-')));
  for (const name of DEPLOYED) await cp(join(ROOT, name), join(root, name), { recursive: true });
  await symlink(await realpath(join(ROOT, 'node_modules')), join(root, 'node_modules'));
  return {
    root,
    sls: (args, env) =>
      new Promise((resolve) => {
        const startedMs = performance.now();
        const options = { cwd: root, env, maxBuffer: 64 * 1024 * 1024 };
        const command = [serverlessBin(root), ...args];
        execFile(process.execPath, command, options, (error, stdout, stderr) => {
          const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
          resolve({ code, output: stdout + stderr, seconds: (performance.now() - startedMs) / 1000 });
        });
      }),
    remove: () => rm(root, { recursive: true, force: true }),
  };
}
