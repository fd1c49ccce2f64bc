/**
 * Embedded DynamoDB and SQS, each in a process of its own so that a worker's CPU time is only the worker's, and the tables and the queue
 * in them. Many namespaces fit on one pair of servers: each has tables and a queue under its own prefix.
 */
import { join } from 'node:path';
import { CreateTableCommand, type CreateTableCommandInput, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CreateQueueCommand, SQSClient } from '@aws-sdk/client-sqs';
import { LOCAL_REGION, localCredentials } from './environment.ts';
import { type PortService, startPortService } from './services.ts';
import type { QueueProperties, TableProperties, Template } from './template.ts';

export interface AwsServersOptions {
  root: string;
  env: Record<string, string>;
  logDir: string;
  onDied?: (error: Error) => void;
}

/** The two servers; `stop` ends both. */
export interface AwsServers {
  readonly dynamodbUrl: string;
  readonly sqsUrl: string;
  readonly dynamodb: PortService;
  readonly sqs: PortService;
  stop(): Promise<void>;
}

export interface TableNames {
  connections: string;
  workers: string;
  messages: string;
}

/** Tables and queue of one namespace. */
export interface Namespace {
  readonly tables: TableNames;
  readonly queueUrl: string;
  readonly deadLetterQueueUrl: string;
}

export async function startAwsServers(options: AwsServersOptions): Promise<AwsServers> {
  const start = (name: string, kind: string): Promise<PortService> =>
    startPortService({
      name,
      command: process.execPath,
      args: [join(import.meta.dirname, 'aws-server.ts'), kind],
      env: options.env,
      cwd: options.root,
      logFile: join(options.logDir, `${kind}.log`),
      ...(options.onDied === undefined ? {} : { onDied: options.onDied }),
    });
  const [dynamodb, sqs] = await Promise.allSettled([
    start('DynamoDB (dynalite)', 'dynamodb'),
    start('SQS (fauxqs)', 'sqs'),
  ]);
  if (dynamodb.status === 'rejected' || sqs.status === 'rejected') {
    for (const started of [dynamodb, sqs]) if (started.status === 'fulfilled') await started.value.stop();
    throw dynamodb.status === 'rejected' ? dynamodb.reason : (sqs as PromiseRejectedResult).reason;
  }
  return {
    dynamodb: dynamodb.value,
    sqs: sqs.value,
    dynamodbUrl: `http://127.0.0.1:${dynamodb.value.port}`,
    sqsUrl: `http://127.0.0.1:${sqs.value.port}`,
    async stop() {
      await Promise.all([dynamodb.value.stop(), sqs.value.stop()]);
    },
  };
}

export function dynamodbClient(url: string): DynamoDBClient {
  return new DynamoDBClient({ endpoint: url, region: LOCAL_REGION, credentials: localCredentials });
}

export function sqsClient(url: string): SQSClient {
  return new SQSClient({ endpoint: url, region: LOCAL_REGION, credentials: localCredentials });
}

/** Makes the tables and the queue of `template` under `<namespace>-…`. */
export async function createNamespace(
  servers: Pick<AwsServers, 'dynamodbUrl' | 'sqsUrl'>,
  namespace: string,
  template: Template,
): Promise<Namespace> {
  const dynamodb = dynamodbClient(servers.dynamodbUrl);
  const sqs = sqsClient(servers.sqsUrl);
  const tables = {
    connections: `${namespace}-connections`,
    workers: `${namespace}-workers`,
    messages: `${namespace}-messages`,
  };
  try {
    await dynamodb.send(new CreateTableCommand(tableInput(tables.connections, template.connectionsTable)));
    await dynamodb.send(new CreateTableCommand(tableInput(tables.workers, template.workersTable)));
    await dynamodb.send(new CreateTableCommand(tableInput(tables.messages, template.messagesTable)));
    const dead = `${namespace}-wake-up-dead-letters`;
    const deadLetter = await createQueue(sqs, dead, queueAttributes(template.deadLetterQueue, null));
    const deadArn = `arn:aws:sqs:${LOCAL_REGION}:000000000000:${dead}`;
    const wakeUp = await createQueue(sqs, `${namespace}-wake-up`, queueAttributes(template.wakeUpQueue, deadArn));
    // The name in a queue's URL (`sqs.<region>.localhost`) doesn't resolve on every machine.
    const onThisMachine = (url: string): string => new URL(new URL(url).pathname, servers.sqsUrl).href;
    return { tables, queueUrl: onThisMachine(wakeUp), deadLetterQueueUrl: onThisMachine(deadLetter) };
  } finally {
    dynamodb.destroy();
    sqs.destroy();
  }
}

async function createQueue(sqs: SQSClient, name: string, attributes: Record<string, string>): Promise<string> {
  const { QueueUrl: url } = await sqs.send(new CreateQueueCommand({ QueueName: name, Attributes: attributes }));
  if (url === undefined) throw new Error(`SQS gave no URL for queue ${name}`);
  return url;
}

/** Only what the embedded DynamoDB knows: encryption, recovery, TTL and tags are tested where the template is deployed. */
function tableInput(name: string, properties: TableProperties): CreateTableCommandInput {
  return {
    TableName: name,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: properties.AttributeDefinitions,
    KeySchema: properties.KeySchema,
    GlobalSecondaryIndexes: properties.GlobalSecondaryIndexes?.map((index) => ({
      IndexName: index.IndexName,
      KeySchema: index.KeySchema,
      Projection: index.Projection,
    })),
  };
}

function queueAttributes(properties: QueueProperties, deadLetterArn: string | null): Record<string, string> {
  const { RedrivePolicy: redrive, ...numbers } = properties;
  const attributes = Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, String(value)]));
  if (redrive === undefined || deadLetterArn === null) return attributes;
  const policy = { deadLetterTargetArn: deadLetterArn, maxReceiveCount: redrive.maxReceiveCount };
  return { ...attributes, RedrivePolicy: JSON.stringify(policy) };
}
