/**
 * Least privilege, in both directions: no call without a permission, no permission without a call. Everything that is deployed runs here
 * once through all that it does on AWS, each part under a key id of its own, and what it asked for is compared with its role.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { handler as events } from '../../functions/events.ts';
import { handler as reconcile } from '../../functions/reconcile.ts';
import { handler as status } from '../../functions/status.ts';
import { dynamodbClient } from '../../local/aws.ts';
import { baseEnvironment, workerEnvironment } from '../../local/environment.ts';
import { waitFor } from '../../local/measure.ts';
import { type Service, startService } from '../../local/services.ts';
import { type SourceServer, startSourceServer } from '../../local/source/server.ts';
import { pkOf } from '../../shared/connection.ts';
import { connectionsTable } from '../../shared/tables/connections.ts';
import { leasesTable } from '../../shared/tables/leases.ts';
import { workersTable } from '../../shared/tables/workers.ts';
import { startAws, type TestAws } from '../support/aws.ts';
import { type CallRecorder, startCallRecorder } from '../support/call-recorder.ts';
import { type CompiledTemplate, compile } from '../support/deploy/compiled.ts';
import { copyProject } from '../support/deploy/project.ts';
import { call, context, type Sent, scheduledEvent, setEnvironment } from '../support/lambda.ts';
import { compare, granted, type Permission, statementsOf } from '../support/permissions.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const timings = { RECONCILE_EVERY: '0.9', SWEEP_EVERY: '0.3', METRICS: 'cloudwatch', ALLOWED_HOSTS: '127.0.0.1' };

let aws: TestAws;
let recorder: CallRecorder;
let source: SourceServer;
let template: CompiledTemplate;
let worker: Service | undefined;

/** Runs it as this entry point: clients take the key at their first request, and each entry point has clients of its own. */
async function as<T>(entryPoint: string, work: () => Promise<T>): Promise<T> {
  process.env['AWS_ACCESS_KEY_ID'] = entryPoint;
  return work();
}

const usedBy = (by: string): Set<Permission> =>
  new Set(recorder.calls().flatMap((one) => (one.by === by ? one.permissions : [])));

beforeAll(async () => {
  const project = await copyProject();
  try {
    template = await compile(project, ['--stage', 'test']);
  } finally {
    await project.remove();
  }
  aws = await startAws({ namespace: 'permissions' });
  const { connections, workers, messages } = aws.tables;
  const names = { [connections]: 'ConnectionsTable', [workers]: 'WorkersTable', [messages]: 'MessagesTable' };
  recorder = await startCallRecorder(aws.servers, names);
  source = await startSourceServer(0);
  const through = { dynamodbUrl: recorder.url, sqsUrl: recorder.url };
  setEnvironment({ ...aws, servers: { ...aws.servers, ...through } }, { ...timings, ECS_CLUSTER: 'fleet' });
  Object.assign(process.env, { AWS_ENDPOINT_URL: recorder.url, QUEUE_URL: throughRecorder(aws.queueUrl) });
  await everything();
}, 120_000);

afterAll(async () => {
  await worker?.stop();
  await source?.close();
  await recorder?.stop();
  await aws?.stop();
});

/** The SDK goes where the queue's URL points. */
const throughRecorder = (queueUrl: string): string => new URL(new URL(queueUrl).pathname, recorder.url).href;

const send = (sent: Sent) => as('events', () => call(events, sent));
const start = (id: string) => {
  const ws_url = `ws://127.0.0.1:${source.port}/${id}?last_seq={last_seq}&rate=20`;
  return send({
    resource: '/events',
    body: { event_type: 'START', connection_id: id, ws_url, source: { name: 'numbered' } },
  });
};
const stop = (id: string) => send({ resource: '/events', body: { event_type: 'STOP', connection_id: id } });
const show = (sent: Sent) => as('status', () => call(status, sent));
const look = (event: unknown) => as('reconcile', () => reconcile(event, context()));

async function everything(): Promise<void> {
  await left('crashed', 'task/crashed', ['left', 'unwanted']);
  await left('stopped', 'task/stopped', ['free']);
  await stop('unwanted');
  await start('one');
  // A wake-up that isn't sent is counted.
  recorder.refuseNext('SendMessageBatch');
  await start('unsent');

  await show({ resource: '/connections/{id}', path: { id: 'one' } });
  // Somebody owns it, and may be dead.
  await show({ resource: '/connections/{id}', path: { id: 'left' } });
  await show({ resource: '/connections' });
  await show({ resource: '/connections', query: { owner: 'crashed' } });
  await show({ resource: '/fleet' });

  const ended = { taskArn: 'task/stopped', lastStatus: 'STOPPED' };
  await look({ source: 'aws.ecs', 'detail-type': 'ECS Task State Change', detail: ended });
  await look({ connectionId: 'one' });
  await look({ workerId: 'crashed' });
  await look({ dryRun: true });
  await look(scheduledEvent);

  await aLife();
}

/** A worker's whole life: it claims, takes over from the dead, stores, and hands over; what comes too late it gives back. */
async function aLife(): Promise<void> {
  worker = await startService({
    name: 'worker',
    command: process.execPath,
    args: [join(ROOT, 'worker', 'main.ts')],
    cwd: ROOT,
    logFile: join(ROOT, '.local', 'tests', 'permissions', 'worker.log'),
    env: {
      ...workerEnvironment(baseEnvironment(process.env), { dynamodbUrl: recorder.url, sqsUrl: recorder.url }, aws),
      AWS_ENDPOINT_URL: recorder.url,
      AWS_ACCESS_KEY_ID: 'worker',
      QUEUE_URL: throughRecorder(aws.queueUrl),
      SHARDS: '4',
      METRICS: 'cloudwatch',
      METRICS_EVERY: '0.5',
      STOP_CHECK_EVERY: '0.5',
      LONG_POLL: '3',
      STOP_TIMEOUT: '20',
    },
  });
  const asked = (operation: string) =>
    recorder.calls().filter((one) => one.by === 'worker' && one.operation === operation);
  await waitFor('messages of all three', 20_000, async () => {
    const { items } = await held(['one', 'left', 'free']);
    return items === 3 && asked('BatchWriteItem').length > 0 && asked('PutMetricData').length > 0 ? true : null;
  });
  const polls = asked('ReceiveMessage').length;
  await waitFor('another poll', 10_000, async () => (asked('ReceiveMessage').length > polls ? true : null));
  worker.child.kill('SIGTERM');
  // Into the poll that is still open.
  await start('late');
  await worker.ended;
}

async function held(ids: string[]): Promise<{ items: number }> {
  const table = connectionsTable(aws.dynamodb, aws.tables.connections, { shards: 4, stoppedTtlMs: 60_000 });
  const items = await Promise.all(ids.map((id) => table.get(pkOf(id))));
  return { items: items.filter((item) => item?.status === 'OPEN').length };
}

/** Connections whose worker is gone: its lease has run out, theirs have not. */
async function left(workerId: string, taskArn: string, ids: string[]): Promise<void> {
  const db = dynamodbClient(aws.servers.dynamodbUrl);
  const nowMs = Date.now();
  const row = { workerId, held: 1, capacity: 9, draining: false, revision: '1', taskArn, startedAtMs: nowMs };
  await workersTable(db, aws.tables.workers).register({ ...row, leaseExpiresAtMs: nowMs - 60_000 });
  for (const id of ids) {
    await start(id);
    const leases = leasesTable(db, aws.tables.connections, { shards: 4 });
    expect(await leases.acquire(pkOf(id), workerId, nowMs + 600_000, nowMs)).not.toBe('refused');
  }
  db.destroy();
}

/** What Lambda does for a function, and ECS for a worker, in their names. */
const logs = (group: string): Permission[] => [`logs:CreateLogStream ${group}`, `logs:PutLogEvents ${group}`];
const lambda = (group: string): Permission[] => [
  ...logs(group),
  'xray:PutTraceSegments *',
  'xray:PutTelemetryRecords *',
];
/** Only what a traced wake-up led to is traced, and the embedded SQS drops its trace header. Seen in tests of the traces. */
const untraced: Permission[] = ['xray:PutTraceSegments *'];

describe('each role may do what its code does, and nothing else', () => {
  test.each([
    ['events', 'EventsRole', lambda('EventsLogGroup')],
    ['status', 'StatusRole', lambda('StatusLogGroup')],
    ['reconcile', 'ReconcileRole', lambda('ReconcileLogGroup')],
    ['worker', 'WorkerRole', untraced],
  ])('%s', (entryPoint, role, excepted) => {
    expect(compare(usedBy(entryPoint), granted(template, role), excepted)).toEqual([]);
  });

  test('what starts a worker may fetch its image and open its log, which is all that ECS does with it', () => {
    const image = ['BatchCheckLayerAvailability', 'BatchGetImage', 'GetDownloadUrlForLayer'];
    const needed: Permission[] = ['ecr:GetAuthorizationToken *', ...logs('WorkerLogGroup')];
    for (const action of image) needed.push(`ecr:${action} WorkerRepository`);
    expect(compare(new Set(needed), granted(template, 'WorkerExecutionRole'))).toEqual([]);
  });

  test('all roles of the template are among them', () => {
    const roles = Object.keys(template.Resources).filter((id) => template.Resources[id]?.Type === 'AWS::IAM::Role');
    expect(new Set(roles)).toEqual(
      new Set(['EventsRole', 'StatusRole', 'ReconcileRole', 'WorkerRole', 'WorkerExecutionRole']),
    );
  });

  test('nobody called who has no role', () => {
    expect(new Set(recorder.calls().map(({ by }) => by))).toEqual(new Set(['events', 'status', 'reconcile', 'worker']));
  });

  test('everything is limited to a resource, but for actions that take none', () => {
    // Which these are is in AWS's service authorization reference.
    const takesNone = [
      'cloudwatch:PutMetricData *',
      'ecr:GetAuthorizationToken *',
      'xray:PutTraceSegments *',
      'xray:PutTelemetryRecords *',
    ];
    const roles = ['EventsRole', 'StatusRole', 'ReconcileRole', 'WorkerRole', 'WorkerExecutionRole'];
    const wide = roles.flatMap((role) => [...granted(template, role)]).filter((one) => one.endsWith('*'));
    expect(wide.filter((one) => !takesNone.includes(one))).toEqual([]);
    const metrics = roles
      .flatMap((role) => statementsOf(template, role))
      .filter(({ Action }) => Action === 'cloudwatch:PutMetricData');
    for (const { Condition } of metrics)
      expect(Condition).toEqual({ StringEquals: { 'cloudwatch:namespace': 'holdfast' } });
  });

  test('every request that the code can send was sent', () => {
    const files = globSync('{functions,shared,sources,worker}/**/*.ts', { cwd: ROOT });
    const sources = files.map((file) => readFileSync(join(ROOT, file), 'utf8'));
    const written = sources.flatMap((text) => [...text.matchAll(/new (\w+)Command\(/g)].map(([, name]) => name));
    const sent = recorder.calls().map(({ operation }) => operation);
    expect(new Set([...sent, 'PutTraceSegments'])).toEqual(new Set(written));
  });
});

describe('the comparison', () => {
  const used = new Set<Permission>(['sqs:SendMessage WakeUpQueue']);

  test('finds a call without a permission', () => {
    expect(compare(used, new Set())).toEqual(['not permitted: sqs:SendMessage WakeUpQueue']);
  });

  test('finds a permission without a call, unless it is excepted', () => {
    const may = new Set<Permission>([...used, 'sqs:SendMessage *']);
    expect(compare(used, may)).toEqual(['never used: sqs:SendMessage *']);
    expect(compare(used, may, ['sqs:SendMessage *'])).toEqual([]);
  });

  test('finds an exception that nothing needs', () => {
    expect(compare(used, used, ['sqs:DeleteMessage WakeUpQueue'])).toEqual([
      'excepted, but not permitted: sqs:DeleteMessage WakeUpQueue',
    ]);
  });
});
