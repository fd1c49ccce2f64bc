import { globSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { describeViolation, PRODUCT_FOLDERS, violationsIn } from './support/architecture.ts';

const ROOT = join(import.meta.dirname, '..');

const filesOf = (folder: string): string[] =>
  globSync(`${folder}/**/*.{ts,mts,cts,js,mjs,cjs}`, { cwd: ROOT }).map((file) => file.split(sep).join('/'));

describe('the product keeps its layout', () => {
  test.each(PRODUCT_FOLDERS)('%s', (folder) => {
    const files = filesOf(folder);
    expect(files).not.toEqual([]);
    const violations = files.flatMap((file) => violationsIn(file, readFileSync(join(ROOT, file), 'utf8')));
    expect(violations.map(describeViolation)).toEqual([]);
  });
});

// A checker must be able to fail: each rule gets code that breaks it, and code close to it that doesn't.
type Example = [rule: string, file: string, source: string];

const broken: Example[] = [
  ['layers', 'functions/events.ts', `import { claim } from '../worker/worker.ts';`],
  ['layers', 'worker/worker.ts', `import type { Handler } from '../functions/http.ts';`],
  ['layers', 'worker/worker.ts', `export { start } from '../functions/events.ts';`],
  ['layers', 'worker/worker.ts', `export * from '../functions/events.ts';`],
  ['layers', 'worker/worker.ts', `type Start = import('../functions/events.ts').Start;`],
  ['layers', 'worker/worker.ts', `const events = await import('../functions/events.ts');`],
  ['layers', 'shared/wakeup.ts', `import { hold } from '../worker/holding.ts';`],
  ['layers', 'shared/tables/workers.ts', `import { plain } from '../../sources/plain.ts';`],
  ['layers', 'sources/plain.ts', `import { dial } from '../worker/socket.ts';`],
  ['layers', 'worker/main.ts', `import { harness } from '../tests/support/harness.ts';`],
  ['layers', 'worker/main.ts', `import { fleet } from '../local/fleet.ts';`],
  ['layers', 'functions/status.ts', `import plugin from '../deploy/plugin.js';`],
  ['layers', 'shared/log.ts', `import '../bench/main.ts';`],
  ['layers', 'cli/status.ts', `import { showFleet } from '../functions/fleet.ts';`],
  ['layers', 'cli/drain.ts', `import { Holdings } from '../worker/holdings.ts';`],
  ['layers', 'cli/local.ts', `import type { LocalState } from '../local/state.ts';`],
  ['layers', 'functions/status.ts', `import { readStatus } from '../cli/status.ts';`],
  ['ws', 'worker/holding.ts', `import { WebSocket } from 'ws';`],
  ['ws', 'shared/source.ts', `import type { RawData } from 'ws';`],
  ['middy', 'shared/log.ts', `import middy from '@middy/core';`],
  ['aws-clients', 'shared/queue.ts', `import { SQSClient } from '@aws-sdk/client-sqs'; new SQSClient({});`],
  ['aws-clients', 'functions/http.ts', `import { DynamoDB as Db } from '@aws-sdk/client-dynamodb'; new Db();`],
  ['aws-clients', 'worker/sink.ts', `import * as aws from '@aws-sdk/client-sqs'; new aws.SQSClient({});`],
  ['environment', 'worker/main.ts', `const level = process.env.LOG_LEVEL;`],
  ['environment', 'worker/main.ts', `const { env } = process;`],
  ['environment', 'worker/main.ts', `import { env } from 'node:process';`],
  ['environment', 'worker/main.ts', `import proc from 'node:process'; proc['env'];`],
  ['clock', 'worker/presence.ts', `setTimeout(() => undefined, 1);`],
  ['clock', 'worker/presence.ts', `globalThis.setInterval(renew, 1);`],
  ['clock', 'worker/presence.ts', `const later = { run: setImmediate };`],
  ['clock', 'worker/presence.ts', `const now = Date.now();`],
  ['clock', 'worker/presence.ts', `const now = new Date();`],
  ['clock', 'worker/presence.ts', `const { now } = performance;`],
  ['clock', 'worker/presence.ts', `import { performance as p } from 'node:perf_hooks'; p.now();`],
  ['clock', 'worker/presence.ts', `process.hrtime.bigint();`],
  ['clock', 'worker/presence.ts', `fetch(url, { signal: AbortSignal.timeout(1) });`],
  ['clock', 'worker/presence.ts', `import { setTimeout as sleep } from 'node:timers/promises';`],
  ['dynamodb-expressions', 'shared/wakeup.ts', `const input = { UpdateExpression: 'SET a = :a' };`],
  ['dynamodb-expressions', 'functions/status.ts', `const input = { ['KeyConditionExpression']: 'pk = :pk' };`],
  ['default-export', 'worker/main.ts', `export default 1;`],
  ['default-export', 'worker/main.ts', `const a = 1; export { a as default };`],
  ['enum', 'shared/errors.ts', `export enum Reason { Lost }`],
  ['any', 'shared/errors.ts', `export const parse = (x: unknown) => x as any;`],
  ['empty-catch', 'worker/sink.ts', `try { flush(); } catch {}`],
  ['empty-catch', 'worker/sink.ts', `try { flush(); } catch (error) {\n}`],
  ['empty-catch', 'worker/sink.ts', `flush().catch(() => {});`],
];

const sound: Example[] = [
  [
    'layers',
    'worker/main.ts',
    `import { plain } from '../sources/plain.ts'; import { x } from './worker.ts'; import 'node:fs';`,
  ],
  ['layers', 'shared/tables/workers.ts', `import { log } from '../log.ts';`],
  ['layers', 'cli/status.ts', `import { readFleet } from '../shared/fleet.ts'; import { bold } from './text.ts';`],
  ['ws', 'worker/socket.ts', `import { WebSocket } from 'ws';`],
  ['middy', 'functions/http.ts', `import middy from '@middy/core';`],
  ['aws-clients', 'worker/main.ts', `import { SQSClient } from '@aws-sdk/client-sqs'; new SQSClient({});`],
  [
    'aws-clients',
    'shared/queue.ts',
    `import { SendMessageCommand } from '@aws-sdk/client-sqs'; new SendMessageCommand({});`,
  ],
  ['environment', 'shared/config.ts', `const level = process.env.LOG_LEVEL;`],
  ['environment', 'worker/main.ts', `import process from 'node:process'; process.exitCode = 1; config.env;`],
  ['clock', 'shared/clock.ts', `import { setTimeout } from 'node:timers/promises'; Date.now();`],
  [
    'clock',
    'worker/presence.ts',
    `clock.now(); socket.setTimeout(1); type Timer = ReturnType<typeof setTimeout>; new Date(clock.now());`,
  ],
  ['dynamodb-expressions', 'shared/tables/workers.ts', `const input = { ConditionExpression: 'a = :a' };`],
  ['any', 'shared/errors.ts', `// any enum\nexport const any = 'any enum, catch {}';`],
  ['empty-catch', 'worker/sink.ts', `try { kill(); } catch {\n  // already gone\n}`],
];

describe('the checker', () => {
  test.each(broken)('finds %s in %s: %s', (rule, file, source) => {
    expect(violationsIn(file, source).map((violation) => violation.rule)).toContain(rule);
  });

  test.each(sound)('accepts, for %s, %s: %s', (_rule, file, source) => {
    expect(violationsIn(file, source).map(describeViolation)).toEqual([]);
  });

  test('finds a file of more than 260 lines', () => {
    expect(violationsIn('shared/connection.ts', 'export {};\n'.repeat(260))).toEqual([]);
    expect(violationsIn('shared/connection.ts', 'export {};\n'.repeat(261))).toMatchObject([{ rule: 'length' }]);
  });

  test('says where, which rule, and what to do', () => {
    const [violation] = violationsIn('worker/main.ts', 'export {};\nexport enum E {}').map(describeViolation);
    expect(violation).toBe('worker/main.ts:2 [enum] use a union of string literals');
  });
});
