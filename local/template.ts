/**
 * What is deployed, as CloudFormation would get it. The local tables and queue are made from it, so they can't drift from what
 * `serverless.yml` says. Packaging takes seconds, so the result is kept until a file that it depends on changes.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { z } from 'zod';

const run = promisify(execFile);

const keySchema = z.array(z.object({ AttributeName: z.string(), KeyType: z.enum(['HASH', 'RANGE']) }));

const tableSchema = z.object({
  AttributeDefinitions: z.array(z.object({ AttributeName: z.string(), AttributeType: z.enum(['S', 'N', 'B']) })),
  KeySchema: keySchema,
  GlobalSecondaryIndexes: z
    .array(
      z.object({
        IndexName: z.string(),
        KeySchema: keySchema,
        Projection: z.object({
          ProjectionType: z.enum(['ALL', 'KEYS_ONLY', 'INCLUDE']),
          NonKeyAttributes: z.array(z.string()).optional(),
        }),
      }),
    )
    .optional(),
});

const queueSchema = z.object({
  VisibilityTimeout: z.coerce.number().optional(),
  MessageRetentionPeriod: z.coerce.number().optional(),
  ReceiveMessageWaitTimeSeconds: z.coerce.number().optional(),
  DelaySeconds: z.coerce.number().optional(),
  RedrivePolicy: z.object({ maxReceiveCount: z.coerce.number() }).optional(),
});

const templateSchema = z.object({
  Resources: z.object({
    ConnectionsTable: z.object({ Properties: tableSchema }),
    WorkersTable: z.object({ Properties: tableSchema }),
    MessagesTable: z.object({ Properties: tableSchema }),
    WakeUpQueue: z.object({ Properties: queueSchema }),
    WakeUpDeadLetterQueue: z.object({ Properties: queueSchema.optional() }),
  }),
});

export type TableProperties = z.infer<typeof tableSchema>;
export type QueueProperties = z.infer<typeof queueSchema>;

export interface Template {
  connectionsTable: TableProperties;
  workersTable: TableProperties;
  messagesTable: TableProperties;
  wakeUpQueue: QueueProperties;
  deadLetterQueue: QueueProperties;
}

/**
 * Packages the service for stage `local` and reads the compiled template.
 * @param root the folder with `serverless.yml`
 * @param env what `serverless` shall see of the environment
 */
export async function compileTemplate(
  root: string,
  env: Record<string, string>,
  signal: AbortSignal,
): Promise<Template> {
  const cacheFile = join(root, '.local', 'templates', `${await fingerprint(root)}.json`);
  for (;;) {
    const cached = await readIfThere(cacheFile);
    if (cached !== null) return readTemplate(cached);
    signal.throwIfAborted();
    // One at a time: `serverless` also writes where it isn't told to, and two of them would delete that from each other.
    const unlock = await lock(`${cacheFile}.lock`);
    if (unlock === null) {
      await sleep(lockPollMs);
      continue;
    }
    try {
      await packageOnce(root, env, signal, cacheFile);
    } finally {
      await unlock();
    }
  }
}

const lockPollMs = 200;
/** Longer than packaging takes on a busy machine: whoever held a lock that old was killed. */
const lockStaleMs = 120_000;

/** @returns what gives it back; `null` when somebody else has it */
async function lock(folder: string): Promise<(() => Promise<void>) | null> {
  await mkdir(dirname(folder), { recursive: true });
  try {
    await mkdir(folder);
    return () => rm(folder, { recursive: true, force: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const found = await stat(folder).catch(() => null);
  if (found !== null && Date.now() - found.mtimeMs > lockStaleMs) await rm(folder, { recursive: true, force: true });
  return null;
}

async function packageOnce(
  root: string,
  env: Record<string, string>,
  signal: AbortSignal,
  cacheFile: string,
): Promise<void> {
  const packageDir = join('.local', 'package', String(process.pid));
  try {
    const args = [serverlessBin(root), 'package', '--stage', 'local', '--package', packageDir];
    await run(process.execPath, args, { cwd: root, env, signal }).catch((error: Error & { stdout?: string }) => {
      signal.throwIfAborted();
      throw new Error(`serverless.yml can't be packaged:\n${error.stdout ?? error.message}`);
    });
    const text = await readFile(join(root, packageDir, 'cloudformation-template-update-stack.json'), 'utf8');
    readTemplate(text);
    await writeFile(`${cacheFile}.${process.pid}`, text);
    await rename(`${cacheFile}.${process.pid}`, cacheFile);
  } finally {
    await rm(join(root, packageDir), { recursive: true, force: true });
  }
}

export function readTemplate(text: string): Template {
  const { Resources: resources } = templateSchema.parse(JSON.parse(text));
  return {
    connectionsTable: resources.ConnectionsTable.Properties,
    workersTable: resources.WorkersTable.Properties,
    messagesTable: resources.MessagesTable.Properties,
    wakeUpQueue: resources.WakeUpQueue.Properties,
    deadLetterQueue: resources.WakeUpDeadLetterQueue.Properties ?? {},
  };
}

export function serverlessBin(root: string): string {
  return join(root, 'node_modules', 'serverless', 'bin', 'serverless.js');
}

/** The template depends on serverless.yml, on what deploy/ adds to it, and on the versions of the packages. */
async function fingerprint(root: string): Promise<string> {
  const deployed = await readdir(join(root, 'deploy'), { recursive: true, withFileTypes: true });
  const files = deployed.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const hash = createHash('sha256');
  for (const file of ['serverless.yml', 'package-lock.json'].map((name) => join(root, name)).concat(files.sort())) {
    hash.update(await readFile(file)).update('\0');
  }
  return hash.digest('hex').slice(0, 16);
}

async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
