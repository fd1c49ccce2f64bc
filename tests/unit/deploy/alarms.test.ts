import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const alarms = [...read('deploy/alarms.yml').matchAll(/^ {2}(\w+):\n {4}Type: AWS::CloudWatch::Alarm$/gm)].map(
  ([, name]) => name ?? '',
);

test('there are as many as README.md says', () => {
  expect(alarms).toHaveLength(11);
  expect(read('README.md')).toContain('eleven [alarms]');
});

describe.each(alarms)('%s', (alarm) => {
  test('goes by a name that says which it is', () => {
    expect(read('deploy/alarms.yml')).toContain(`AlarmName: \${self:custom.name}-${alarm}\n`);
  });

  test('shows on the dashboard', () => {
    expect(read('deploy/dashboard.yml')).toContain(`:alarm:\${self:custom.name}-${alarm}"`);
  });

  test('has its part of the runbook', () => {
    expect(read('docs/runbook.md')).toMatch(new RegExp(`^### (\\w+ and )?${alarm}\\b`, 'm'));
  });
});
