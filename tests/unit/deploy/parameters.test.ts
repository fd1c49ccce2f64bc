import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { z } from 'zod';
import { configNames } from '../../../shared/config.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const stages = z
  .record(z.string(), z.record(z.string(), z.unknown()).nullable())
  .parse(parse(read('deploy/parameters.yml')));
const parameters = Object.keys(stages['default'] ?? {});

/** Where things are, which is the stack's own business. */
const wiring = [
  'buildFolder',
  'connectionsTable',
  'workersTable',
  'messagesTable',
  'queueUrl',
  'cluster',
  'serviceName',
];

/** What the stack says to its processes itself, and nobody chooses. */
// RECONCILE_EVERY is the schedule's minute.
const fixed = new Set(
  `CONNECTIONS_TABLE WORKERS_TABLE MESSAGES_TABLE QUEUE_URL SERVICE_NAME REVISION HEALTH_FILE ECS_CLUSTER TASK_ARN
   ECS_CONTAINER_METADATA_URI_V4 RECONCILE_EVERY`.split(/\s+/),
);

const camel = (name: string): string => name.toLowerCase().replace(/_(\w)/g, (_match, letter) => letter.toUpperCase());

/** The first cells of README's table under this heading: the names in them. */
function namesInTable(heading: string): Set<string> {
  const section =
    read('README.md')
      .split(`\n${heading}\n`)[1]
      ?.split(/\n###? /)[0] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  return new Set(
    rows.flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name ?? '')),
  );
}

test('README.md lists the parameters of a stage, all of them and no other', () => {
  const listed = namesInTable('### Parameters');
  expect([...listed].sort()).toEqual(parameters.filter((name) => !wiring.includes(name)).sort());
});

test('README.md lists every variable', () => {
  const own = ['ECS_CONTAINER_METADATA_URI_V4'];
  expect([...namesInTable('## Configuration')].sort()).toEqual(
    configNames.filter((name) => !own.includes(name)).sort(),
  );
});

test('every variable that somebody may want otherwise is a parameter', () => {
  expect(configNames.filter((name) => !fixed.has(name) && !parameters.includes(camel(name)))).toEqual([]);
});

test('stages change only parameters that there are', () => {
  const others = Object.values(stages).flatMap((one) => Object.keys(one ?? {}));
  expect(others.filter((name) => !parameters.includes(name))).toEqual([]);
});
