/**
 * The embedded DynamoDB and SQS for one test file, with the tables and the queue that `serverless.yml` describes. More namespaces fit on the
 * same pair of servers.
 */
import { join } from 'node:path';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { SQSClient } from '@aws-sdk/client-sqs';
import {
  type AwsServers,
  createNamespace,
  dynamodbClient,
  type Namespace,
  sqsClient,
  startAwsServers,
} from '../../local/aws.ts';
import { baseEnvironment } from '../../local/environment.ts';
import { compileTemplate, type Template } from '../../local/template.ts';

const ROOT = join(import.meta.dirname, '..', '..');

export interface TestAws extends Namespace {
  readonly servers: AwsServers;
  readonly template: Template;
  readonly dynamodb: DynamoDBClient;
  readonly sqs: SQSClient;
  /** Another set of tables and queue on the same servers. */
  namespace(name: string): Promise<Namespace>;
  stop(): Promise<void>;
}

/** @param namespace in front of the names of tables and queue */
export async function startAws({ namespace }: { namespace: string }): Promise<TestAws> {
  const env = baseEnvironment(process.env);
  const template = await compileTemplate(ROOT, env, new AbortController().signal);
  const servers = await startAwsServers({ root: ROOT, env, logDir: join(ROOT, '.local', 'tests', namespace) });
  const dynamodb = dynamodbClient(servers.dynamodbUrl);
  const sqs = sqsClient(servers.sqsUrl);
  return {
    ...(await createNamespace(servers, namespace, template)),
    servers,
    template,
    dynamodb,
    sqs,
    namespace: (name) => createNamespace(servers, name, template),
    async stop() {
      dynamodb.destroy();
      sqs.destroy();
      await servers.stop();
    },
  };
}
