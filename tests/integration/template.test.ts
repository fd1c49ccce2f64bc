/** What the parameters make of the template. Packaging has neither network nor credentials here, and no builder of images. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { idleCosts } from '../../deploy/cost/idle.ts';
import { prices, withGiven } from '../../deploy/cost/prices.ts';
import { contentTag } from '../../deploy/image/content.ts';
import { baseEnvironment } from '../../local/environment.ts';
import { type CompiledTemplate, compile, ofType } from '../support/deploy/compiled.ts';
import { copyProject, type Project } from '../support/deploy/project.ts';

const KEY = 'arn:aws:kms:us-east-1:000000000000:key/00000000-0000-4000-8000-000000000000';
const ownKey = { 'Fn::If': ['HasKmsKey', { Ref: 'KmsKeyArn' }, { Ref: 'AWS::NoValue' }] };
const changed = { fleet: 'eu', tableBilling: 'provisioned', tableCapacityMax: '500', kmsKeyArn: KEY, minWorkers: '4' };

let project: Project;
let plain: CompiledTemplate;
let other: CompiledTemplate;

const params = (given: Record<string, string>) =>
  Object.entries(given).flatMap(([name, value]) => ['--param', `${name}=${value}`]);

beforeAll(async () => {
  project = await copyProject();
  plain = await compile(project, ['--stage', 'test']);
  other = await compile(project, ['--stage', 'test', ...params(changed)]);
}, 60_000);
afterAll(() => project?.remove());

const properties = (template: CompiledTemplate, id: string) => template.Resources[id]?.Properties ?? {};
const tablesOf = (template: CompiledTemplate) => ofType(template, 'AWS::DynamoDB::Table');

describe('the image', () => {
  test('is named by its content before it exists', async () => {
    const image = { 'Fn::Sub': `\${WorkerRepository.RepositoryUri}:${await contentTag(project.root)}` };
    expect(properties(plain, 'WorkerTask')).toMatchObject({ ContainerDefinitions: [{ Image: image }] });
  });
});

describe('tables', () => {
  test('are on demand, and nothing scales them', () => {
    expect(plain.Parameters?.['TableBilling']?.Default).toBe('on-demand');
    expect(ofType(plain, 'AWS::ApplicationAutoScaling::ScalableTarget').map(([id]) => id)).toEqual(['WorkerScaling']);
  });

  test('are provisioned when asked for, and then each of them and of their indexes scales, reads and writes apart', () => {
    expect(other.Parameters?.['TableBilling']?.Default).toBe('provisioned');
    const scaled = tablesOf(other).flatMap(([id, { Properties }]) => {
      const indexes = (Properties['GlobalSecondaryIndexes'] ?? []) as { IndexName: string }[];
      const parts = ['', ...indexes.map(({ IndexName }) => `/index/${IndexName}`)];
      return parts.flatMap((part) =>
        ['Read', 'Write'].map((unit) => ({
          ServiceNamespace: 'dynamodb',
          ResourceId: { 'Fn::Sub': `table/\${${id}}${part}` },
          ScalableDimension: `dynamodb:${part === '' ? 'table' : 'index'}:${unit}CapacityUnits`,
          MinCapacity: '1',
          MaxCapacity: '500',
        })),
      );
    });
    const targets = ofType(other, 'AWS::ApplicationAutoScaling::ScalableTarget')
      .map(([, { Properties }]) => Properties)
      .filter(({ ServiceNamespace }) => ServiceNamespace === 'dynamodb');
    expect(new Set(targets)).toEqual(new Set(scaled));
    const policies = ofType(other, 'AWS::ApplicationAutoScaling::ScalingPolicy').map(
      ([, { Properties }]) => Properties,
    );
    for (const { ScalingTargetId } of policies) {
      expect(other.Resources[(ScalingTargetId as { Ref: string }).Ref]?.Type).toMatch(/ScalableTarget$/);
    }
    expect(policies).toHaveLength(scaled.length + 1);
  });
});

describe("a key of the account's own", () => {
  test('is for tables, queues and logs', () => {
    expect(other.Parameters?.['KmsKeyArn']?.Default).toBe(KEY);
    for (const [, table] of tablesOf(other)) {
      expect(table.Properties).toMatchObject({ SSESpecification: { SSEType: 'KMS', KMSMasterKeyId: ownKey } });
    }
    for (const [, queue] of ofType(other, 'AWS::SQS::Queue')) {
      expect(queue.Properties).toMatchObject({ KmsMasterKeyId: ownKey });
    }
    const groups = ofType(other, 'AWS::Logs::LogGroup');
    expect(groups).toHaveLength(4);
    for (const [, group] of groups) expect(group.Properties).toMatchObject({ KmsKeyId: ownKey });
  });

  test('may be used by whoever reads or writes what it encrypts, and only through these services', () => {
    const use = other.Resources['KmsKeyUse'];
    expect(use?.Condition).toBe('HasKmsKey');
    expect(use?.Properties['Roles']).toEqual(
      ['Events', 'Status', 'Reconcile', 'Worker'].map((name) => ({ Ref: `${name}Role` })),
    );
    expect(use?.Properties['PolicyDocument']).toMatchObject({
      Statement: [
        {
          Resource: { Ref: 'KmsKeyArn' },
          Condition: { StringEquals: { 'kms:ViaService': [expect.anything(), expect.anything()] } },
        },
      ],
    });
  });
});

describe('a fleet of its own', () => {
  test('shares no name with another of the stage', () => {
    const names = (template: CompiledTemplate) => new Set(JSON.stringify(template).match(/holdfast-test[\w-]*/g));
    expect([...names(other)].filter((name) => !name.startsWith('holdfast-test-eu'))).toEqual([]);
    expect(names(plain).intersection(names(other))).toEqual(new Set());
  });

  test('has a name that every service takes', async () => {
    await expect(compile(project, ['--stage', 'test', '--param', 'fleet=No good'])).rejects.toThrow(
      'must be of small letters, digits and hyphens',
    );
  });
});

describe('an idle stack', () => {
  const total = (template: CompiledTemplate, price = withGiven([])) =>
    idleCosts(template, price).reduce((sum, { dollars }) => sum + dollars, 0);
  const cost = (template: CompiledTemplate, what: string) =>
    idleCosts(template, prices).find((one) => one.what === what)?.dollars;

  test('costs what README.md says, or less', () => {
    expect(total(plain)).toBeGreaterThan(20);
    expect(total(plain)).toBeLessThan(60);
  });

  test('costs more with more workers, and less at lower prices', () => {
    expect(cost(other, 'Fargate')).toBeCloseTo(2 * (cost(plain, 'Fargate') ?? Number.NaN));
    const free = withGiven(['fargateArmVcpuHour=0', 'fargateArmGigabyteHour=0']);
    expect(total(plain) - total(plain, free)).toBeCloseTo(cost(plain, 'Fargate') ?? Number.NaN);
    expect(() => withGiven(['fargate=0'])).toThrow('there is no price fargate');
    expect(() => withGiven(['publicIpv4Hour=cheap'])).toThrow('must be a number');
  });
});

const linter = spawnSync('cfn-lint', ['--version']).status === 0;

(linter ? describe : describe.skip)('cfn-lint', () => {
  test.each([
    ['plain', () => plain],
    ['with everything', () => other],
  ])('has nothing to say: %s', (_name, template) => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-lint-'));
    const file = join(folder, 'template.json');
    writeFileSync(file, JSON.stringify(template()));
    const { stdout, status } = spawnSync('cfn-lint', [file], { encoding: 'utf8', env: baseEnvironment(process.env) });
    rmSync(folder, { recursive: true });
    expect(stdout).toBe('');
    expect(status).toBe(0);
  });
});
