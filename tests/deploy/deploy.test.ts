/**
 * `sls deploy` and `sls remove` for real, against an emulated AWS (moto), and what is there afterwards by AWS's own word. What moto
 * can't make is looked at in the compiled template (template.test.ts).
 */
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { contentTag } from '../../deploy/image/content.ts';
import { readConfig } from '../../shared/config.ts';
import { type Snapshot, snapshot } from '../support/deploy/account.ts';
import { ofType } from '../support/deploy/compiled.ts';
import { type DeployedFunction, deployedFunction } from '../support/deploy/deployed-function.ts';
import { differences } from '../support/deploy/differences.ts';
import { deployedTemplate, madeResources } from '../support/deploy/resources.ts';
import { type DeployTest, hasMoto, startDeployTest } from '../support/deploy/stack.ts';
import { apiEvent } from '../support/lambda.ts';
import * as expected from './expected.ts';

const { FLEET } = expected;
const STAGE = ['--stage', 'test'];
const CHANGED = [...STAGE, '--param', 'functionMemory=512'];

const suite = hasMoto() ? describe : describe.skip;

suite('sls deploy', () => {
  let on: DeployTest;
  let first: Snapshot;

  beforeAll(async () => {
    on = await startDeployTest();
    await on.must(['deploy', ...STAGE]);
    first = await snapshot(on.aws, FLEET);
  });
  afterAll(() => on?.stop());

  describe('the first time', () => {
    test('builds the image, and pushes it before there is a service that wants it', async () => {
      const tag = await contentTag(on.project.root);
      const uri = `${first.repository}:${tag}`;
      const commands = on.builders.told().map(({ name, args }) => `${name} ${args.join(' ')}`);
      expect(commands).toEqual([
        'docker info',
        `docker build --platform linux/arm64 --file Dockerfile --tag ${FLEET}-worker:${tag} .`,
        `docker image inspect --format {{.Os}}/{{.Architecture}} ${FLEET}-worker:${tag}`,
        `docker login --username AWS --password-stdin ${uri.slice(0, uri.indexOf('/'))}`,
        `docker tag ${FLEET}-worker:${tag} ${uri}`,
        `docker push ${uri}`,
      ]);
      expect(on.builders.told().find(({ args }) => args[0] === 'login')?.input).toBeTruthy();
      expect(first.task?.containerDefinitions?.[0]?.image).toBe(uri);
    });

    test('makes the tables, with their keys and indexes', () => {
      expect(first.tables).toMatchObject(expected.tables);
      expect(Object.keys(first.tables)).toHaveLength(3);
    });

    test('makes the queue, and another for what fails', () => {
      expect(first.queues).toMatchObject(expected.queues);
    });

    test('makes the functions, each with a role of its own', async () => {
      expect(first.functions).toMatchObject(expected.functions);
      const made = await madeResources(on.aws, FLEET);
      const roles = Object.values(first.functions).map(({ role }) => role?.split('/').at(-1));
      expect(new Set(roles)).toEqual(new Set([made['EventsRole'], made['ReconcileRole'], made['StatusRole']]));
    });

    test('gives the functions an environment that they can read', () => {
      for (const { environment } of Object.values(first.functions)) {
        expect(expected.unknownSettings(environment)).toEqual([]);
        expect(readConfig(environment)).toMatchObject(expected.configuration(environment['QUEUE_URL']));
      }
      expect(first.functions[`${FLEET}-reconcile`]?.environment).toMatchObject({ ECS_CLUSTER: FLEET });
    });

    test('makes the rules: each minute, and when a task has ended', async () => {
      const rules = Object.values(first.rules);
      const target = expect.stringMatching(new RegExp(`:function:${FLEET}-reconcile$`));
      expect(rules).toHaveLength(2);
      expect(rules).toContainEqual(
        expect.objectContaining({ state: 'ENABLED', schedule: 'rate(1 minute)', targets: [target] }),
      );
      const pattern = {
        source: ['aws.ecs'],
        'detail-type': ['ECS Task State Change'],
        detail: { lastStatus: ['STOPPED'], clusterArn: [expect.stringMatching(new RegExp(`:cluster/${FLEET}$`))] },
      };
      expect(rules).toContainEqual(expect.objectContaining({ state: 'ENABLED', pattern, targets: [target] }));
    });

    test('makes a role for each, which nothing else can take', () => {
      const services = Object.values(first.roles).map(({ trust }) => expected.trusted(trust));
      expect(services.filter((name) => name === 'lambda.amazonaws.com')).toHaveLength(3);
      expect(services.filter((name) => name === 'ecs-tasks.amazonaws.com')).toHaveLength(2);
      expect(services).toHaveLength(5);
      for (const { policies } of Object.values(first.roles)) expect(Object.keys(policies)).toHaveLength(1);
    });

    test('keeps logs, for so long and no longer', () => {
      expect(first.logGroups).toEqual(expected.logGroups);
    });

    test('makes the cluster, the task and the service', () => {
      expect(first.cluster?.name).toBe(FLEET);
      expect(first.task).toMatchObject(expected.task);
      expect(first.service).toMatchObject(expected.service);
    });

    test('gives the worker an environment that it can read', () => {
      const entries = first.task?.containerDefinitions?.[0]?.environment ?? [];
      const environment = Object.fromEntries(entries.map(({ name = '', value = '' }) => [name, value]));
      expect(expected.unknownSettings(environment)).toEqual([]);
      expect(readConfig(environment)).toMatchObject({
        ...expected.configuration(first.functions[`${FLEET}-events`]?.environment['QUEUE_URL']),
        stopTimeoutMs: (first.task?.containerDefinitions?.[0]?.stopTimeout ?? 0) * 1000,
        healthFile: '/tmp/alive',
      });
    });

    test('makes all that moto can make; for the rest, the template says it', async () => {
      const made = await madeResources(on.aws, FLEET);
      const template = await deployedTemplate(on.aws, FLEET);
      const { Resources } = template;
      const missing = Object.keys(Resources).filter((id) => !(id in made) && Resources[id]?.Condition !== 'HasKmsKey');
      const kinds = [...new Set(missing.map((id) => Resources[id]?.Type ?? ''))].sort();
      const listed = [...kinds, ...expected.ignoredByMoto].map((kind) => `  ${kind}`).join('\n');
      console.log(`moto makes nothing of these; they are looked at in the template that was deployed:\n${listed}`);
      expect(kinds).toEqual(expected.unknownToMoto);
      expect(Resources).toMatchObject(expected.onlyInTemplate);
      const alarms = ofType(template, 'AWS::CloudWatch::Alarm');
      expect(alarms.length).toBeGreaterThanOrEqual(10);
      for (const [, { Properties }] of alarms) expect(Properties['AlarmActions']).toEqual(expected.telling);
    });
  });

  describe('the functions, as they were deployed', () => {
    const deployed: Record<string, DeployedFunction> = {};
    const call = async (name: string, event: unknown) => (await deployed[name]?.invoke(event))?.value;
    const answer = async (name: string, event: unknown) => {
      const { statusCode, body } = (await call(name, event)) as { statusCode: number; body: string };
      return { status: statusCode, body: JSON.parse(body) as unknown };
    };

    beforeAll(async () => {
      for (const name of ['events', 'status', 'reconcile']) {
        const configuration = first.functions[`${FLEET}-${name}`];
        if (configuration === undefined) throw new Error(`there is no function ${name}`);
        deployed[name] = await deployedFunction(on.aws, FLEET, name, configuration, on.endpoint);
      }
    });
    afterAll(() => Promise.all(Object.values(deployed).map((one) => one.remove())));

    test('are small, and their code is what Lambda was given', () => {
      for (const { bundleBytes } of Object.values(deployed)) expect(bundleBytes).toBeLessThan(1024 * 1024);
    });

    test('write what is wanted and wake a worker up, show it, and find it when the wake-up is lost', async () => {
      const start = { event_type: 'START', connection_id: 'one', ws_url: 'wss://source.example/one' };
      expect(await answer('events', apiEvent({ resource: '/events', body: start }))).toMatchObject({ status: 202 });
      const key = { pk: { S: 'CONN#one' } };
      const item = await on.aws.dynamodb.send(new GetItemCommand({ TableName: `${FLEET}-connections`, Key: key }));
      expect(item.Item).toMatchObject({ desired_state: { S: 'STARTED' }, ws_url: { S: start.ws_url } });
      expect(await on.wakeUps(FLEET)).toEqual([expect.stringContaining('CONN#one')]);

      const shown = await answer('status', apiEvent({ resource: '/connections/{id}', path: { id: 'one' } }));
      expect(shown).toMatchObject({ status: 200, body: { connection_id: 'one', desired_state: 'STARTED' } });
      expect(await answer('status', apiEvent({ resource: '/fleet' }))).toMatchObject({ status: 200 });

      // The wake-up was taken above, and nobody claims: it is lost.
      expect(await call('reconcile', {})).toMatchObject({ orphans: 1 });
      expect(await on.wakeUps(FLEET)).toEqual([expect.stringContaining('CONN#one')]);
    });
  });

  describe('again', () => {
    test('changes nothing when nothing has changed', async () => {
      const told = on.builders.told().length;
      const { output } = await on.must(['deploy', ...STAGE]);
      expect(output).toContain('No changes to deploy');
      expect(on.builders.told()).toHaveLength(told);
      expect(differences(first, await snapshot(on.aws, FLEET))).toEqual([]);
    });

    test('changes what a parameter says, and nothing else', async () => {
      await on.must(['deploy', ...CHANGED]);
      const memory = Object.keys(expected.functions).map((name) => `functions/${name}/memory`);
      expect(new Set(differences(first, await snapshot(on.aws, FLEET)))).toEqual(new Set(memory));
    });

    test("builds anew when the workers' code has changed, and leaves the rest alone", async () => {
      await appendFile(join(on.project.root, 'worker', 'main.ts'), '\n// changed\n');
      const before = await snapshot(on.aws, FLEET);
      await on.must(['deploy', ...CHANGED]);
      const tag = await contentTag(on.project.root);
      expect(on.builders.told().at(-1)?.args).toEqual(['push', `${before.repository}:${tag}`]);
      const task = (await deployedTemplate(on.aws, FLEET)).Resources['WorkerTask'];
      expect(JSON.stringify(task)).toContain(`\${WorkerRepository.RepositoryUri}:${tag}`);
      const changed = differences(before, await snapshot(on.aws, FLEET));
      expect(changed.filter((path) => !path.startsWith('task/'))).toEqual([]);
      expect(changed).toContain('task/revision');
    });
  });

  describe('for another fleet in the same account', () => {
    const other = `${FLEET}-b`;

    test('makes it beside the first, in a network that was there, and leaves nothing of it when it is removed', async () => {
      const before = await snapshot(on.aws, FLEET);
      const made = await madeResources(on.aws, FLEET);
      const told = on.builders.told().length;
      const given = {
        fleet: 'b',
        vpcId: made['Vpc'],
        subnetIds: `${made['PublicSubnetA']},${made['PublicSubnetB']}`,
        image: 'registry.example/holdfast:1',
      };
      const params = Object.entries(given).flatMap(([name, value]) => ['--param', `${name}=${value}`]);
      await on.must(['deploy', ...STAGE, ...params]);
      const there = await snapshot(on.aws, other);
      expect(Object.keys(there.tables)).toEqual(Object.keys(before.tables).map((name) => name.replace(FLEET, other)));
      expect(there.task?.containerDefinitions?.[0]?.image).toBe(given.image);
      expect(await madeResources(on.aws, other)).not.toHaveProperty('Vpc');
      expect(on.builders.told()).toHaveLength(told);

      await on.must(['remove', ...STAGE, ...params]);
      // But for ECS: moto's CloudFormation doesn't delete a service, and so no cluster.
      const { cluster: _cluster, service: _service, task: _task, ...left } = await snapshot(on.aws, other);
      expect(left).toEqual(expected.nothing);
      await expect(madeResources(on.aws, other)).rejects.toThrow('does not exist');
      expect(differences(before, await snapshot(on.aws, FLEET))).toEqual([]);
    });
  });
});
