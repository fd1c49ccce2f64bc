/**
 * Stands in for docker and its like, which need an engine that a test machine doesn't have. It writes down what it was told, in
 * `FAKE_BUILDER_LOG`; fails in the way of `FAKE_BUILDER_FAULT`; and its push puts an image into the ECR that the environment names.
 *
 * `node fake-builder.ts <name> <arguments…>`
 */
import { createHash } from 'node:crypto';
import { appendFileSync, chmodSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export type Told = { name: string; args: string[]; input?: string; cwd: string };

export type Fault = 'stopped' | 'foreign' | 'broken' | 'amd64' | 'login-refused' | 'push-refused' | 'push-lost';

export interface FakeBuilders {
  /** A folder for the front of PATH. */
  readonly bin: string;
  readonly log: string;
  told(): Told[];
}

/** Makes executables of these names. */
export function fakeBuilders(names: string[]): FakeBuilders {
  const bin = mkdtempSync(join(tmpdir(), 'holdfast-builders-'));
  for (const name of names) {
    writeFileSync(join(bin, name), `#!/bin/sh\nexec "${process.execPath}" "${import.meta.filename}" ${name} "$@"\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const log = join(bin, 'told.jsonl');
  writeFileSync(log, '');
  const told = () =>
    readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Told);
  return { bin, log, told };
}

const fails = (code: number, ...lines: string[]): number => {
  process.stderr.write(`${lines.join('\n')}\n`);
  return code;
};

async function main([name = '', ...args]: string[]): Promise<number> {
  const fault = process.env['FAKE_BUILDER_FAULT'] as Fault | undefined;
  const [command] = args;
  const input = command === 'login' ? readFileSync(0, 'utf8') : undefined;
  const told: Told = { name, args, cwd: process.cwd(), ...(input === undefined ? {} : { input }) };
  appendFileSync(process.env['FAKE_BUILDER_LOG'] ?? '/dev/null', `${JSON.stringify(told)}\n`);
  if (command === 'info' && fault === 'stopped') return fails(1, 'Client: 1.0', 'Cannot connect to the daemon.');
  if (command === 'build') {
    if (fault === 'foreign') return fails(1, 'RUN npm ci', 'exec /bin/sh: exec format error');
    if (fault === 'broken')
      return fails(7, ...Array.from({ length: 40 }, (_, line) => `step ${line + 1}`), 'npm error 404');
    process.stdout.write('STEP 1\nSTEP 2\n');
  }
  if (args.includes('inspect')) process.stdout.write(fault === 'amd64' ? 'linux/amd64\n' : 'linux/arm64\n');
  if (command === 'login' && fault === 'login-refused') return fails(1, 'Error: 400 Bad Request');
  if (command === 'push') {
    if (fault === 'push-refused') return fails(1, 'denied: not authorized to perform ecr:InitiateLayerUpload');
    if (fault !== 'push-lost') await put(args[1] ?? '');
  }
  return 0;
}

async function put(uri: string): Promise<void> {
  if (process.env['AWS_ENDPOINT_URL'] === undefined) return;
  // Only here: it takes longer to load than all the rest.
  const { ECRClient, PutImageCommand } = await import('@aws-sdk/client-ecr');
  const [, repositoryName = '', imageTag] = /^[^/]+\/(.+):([^:]+)$/.exec(uri) ?? [];
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const digest = `sha256:${createHash('sha256').update(uri).digest('hex')}`;
  const config = { mediaType: 'application/vnd.oci.image.config.v1+json', digest, size: 1 };
  const imageManifest = JSON.stringify({ schemaVersion: 2, mediaType, config, layers: [] });
  await new ECRClient({}).send(new PutImageCommand({ repositoryName, imageTag, imageManifest }));
}

const isProgram = process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href;
if (isProgram) process.exitCode = await main(process.argv.slice(2));
