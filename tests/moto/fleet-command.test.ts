/** `npm run fleet` on a stage: what it finds by the AWS API, and how it has a task stopped. Invoking a function needs more than moto has. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import {
  CreateClusterCommand,
  DescribeTasksCommand,
  ECSClient,
  RegisterTaskDefinitionCommand,
  RunTaskCommand,
} from '@aws-sdk/client-ecs';
import { CreateFunctionCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { baseEnvironment, LOCAL_REGION, localCredentials } from '../../local/environment.ts';
import { waitFor } from '../../local/measure.ts';
import { workersTable } from '../../shared/tables/workers.ts';
import { acquire, start, tablesOf } from '../support/contract.ts';
import { type Moto, startMoto } from '../support/moto.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const cluster = 'holdfast-test';

type Outcome = { code: number; out: string; err: string };

describe('a stage in moto', () => {
  let moto: Moto;
  let ecs: ECSClient;
  let taskArn: string;

  const fleet = (...args: string[]): Promise<Outcome> =>
    new Promise((resolve) => {
      const env = { ...baseEnvironment(process.env), AWS_ENDPOINT_URL: moto.url, NO_COLOR: '1' };
      execFile(process.execPath, [join('cli', 'fleet.ts'), ...args], { cwd: ROOT, env }, (fault, out, err) => {
        resolve({ code: fault === null ? 0 : Number(fault.code), out, err });
      });
    });

  beforeAll(async () => {
    moto = await startMoto({ namespace: 'holdfast-test' });
    const client = { endpoint: moto.url, region: LOCAL_REGION, credentials: localCredentials };
    ecs = new ECSClient(client);
    taskArn = await runTask();
    await createFunction(new LambdaClient(client));
  }, 60_000);
  afterAll(() => moto?.stop());

  async function runTask(): Promise<string> {
    await ecs.send(new CreateClusterCommand({ clusterName: cluster }));
    const containerDefinitions = [{ name: 'worker', image: 'worker', memory: 128 }];
    const family = { family: 'worker', networkMode: 'awsvpc', containerDefinitions } as const;
    await ecs.send(
      new RegisterTaskDefinitionCommand({ ...family, requiresCompatibilities: ['FARGATE'], cpu: '256', memory: '512' }),
    );
    const found = async (Action: string, tag: RegExp) =>
      tag.exec(await query('ec2', { Action, Version: '2016-11-15' }))?.[1] ?? '';
    const subnets = [await found('DescribeSubnets', /<subnetId>(.*?)</)];
    const securityGroups = [await found('DescribeSecurityGroups', /<groupId>(.*?)</)];
    const networkConfiguration = { awsvpcConfiguration: { subnets, securityGroups } };
    const run = { cluster, taskDefinition: 'worker', launchType: 'FARGATE', networkConfiguration } as const;
    const { tasks } = await ecs.send(new RunTaskCommand(run));
    return tasks?.[0]?.taskArn ?? '';
  }

  async function createFunction(lambda: LambdaClient): Promise<void> {
    const Variables = {
      CONNECTIONS_TABLE: moto.tables.connections,
      WORKERS_TABLE: moto.tables.workers,
      MESSAGES_TABLE: moto.tables.messages,
      QUEUE_URL: moto.queueUrl,
      SERVICE_NAME: 'holdfast-test',
      SHARDS: '4',
      ECS_CLUSTER: cluster,
    };
    await query('iam', { Action: 'CreateRole', RoleName: 'reconcile', AssumeRolePolicyDocument: assumedByLambda });
    await lambda.send(
      new CreateFunctionCommand({
        FunctionName: 'holdfast-test-reconcile',
        Role: 'arn:aws:iam::000000000000:role/reconcile',
        Runtime: 'nodejs22.x',
        Handler: 'x.handler',
        Code: { ZipFile: Buffer.from('UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA==', 'base64') },
        Environment: { Variables },
      }),
    );
  }

  /** A call to a service that isn't worth a client. moto sees by the scope which one is meant. @returns XML */
  async function query(service: string, call: Record<string, string>): Promise<string> {
    const scope = `20300101/${LOCAL_REGION}/${service}/aws4_request`;
    const authorization = `AWS4-HMAC-SHA256 Credential=x/${scope}, SignedHeaders=host, Signature=x`;
    const answer = await fetch(moto.url, {
      method: 'POST',
      body: new URLSearchParams(call),
      headers: { authorization },
    });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.text();
  }

  test('is found by its name, and shown', async () => {
    const tables = tablesOf(moto);
    const workers = workersTable(moto.dynamodb, moto.tables.workers);
    const now = Date.now();
    const about = { held: 1, capacity: 10, draining: false, revision: 'registry/worker:1', taskArn, startedAtMs: now };
    for (const workerId of ['w-on-this-task', 'w-elsewhere']) {
      await workers.register({ ...about, workerId, leaseExpiresAtMs: now + 60_000 });
    }
    await acquire(tables, await start(tables, 'a', { at: now }), 'w-on-this-task', now + 3_600_000, now);
    const { code, out, err } = await fleet('--stage', 'test');
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^holdfast-test +2 workers, 2 of 20 held/);
    expect(out).toMatch(/w-on-this-task +alive +1 .*worker:1/);
  });

  test('has ECS stop the task of the worker that is to be drained', async () => {
    const drained = fleet('--stage', 'test', '--json', 'drain', 'w-on-this-task', '--timeout', '20');
    await waitFor('the task to be stopped', 15_000, async () => {
      const { tasks } = await ecs.send(new DescribeTasksCommand({ cluster, tasks: [taskArn] }));
      // moto ends tasks by itself: the reason says who asked.
      return tasks?.[0]?.stoppedReason === 'drained by npm run fleet' ? true : null;
    });
    // What its worker would do now.
    const tables = tablesOf(moto);
    const item = await tables.connections.get('CONN#a');
    const claim = { pk: 'CONN#a', owner: 'w-on-this-task', epoch: item?.leaseEpoch ?? 0 };
    await tables.leases.release(claim, { lastSeq: undefined, status: { status: 'PENDING', attempts: 0 } }, Date.now());
    await acquire(tables, 'CONN#a', 'w-elsewhere', Date.now() + 60_000, Date.now());
    await workersTable(moto.dynamodb, moto.tables.workers).expire('w-on-this-task', undefined, Date.now());
    const { code, out, err } = await drained;
    expect([code, err]).toEqual([0, '']);
    expect(JSON.parse(out)).toMatchObject({
      held: 1,
      left: 0,
      gone: true,
      moved_to: { 'w-elsewhere': 1 },
      waiting: [],
    });
  });

  test('that isn’t deployed: what to do about it', async () => {
    const { code, err } = await fleet('--stage', 'nowhere');
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/stage nowhere isn't deployed in us-east-1\n.*serverless deploy --stage nowhere/),
    ]);
  });
});

const assumedByLambda = JSON.stringify({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { Service: 'lambda.amazonaws.com' }, Action: 'sts:AssumeRole' }],
});
