/** The functions as Lambda calls them: whole events of API Gateway and EventBridge, and the environment of a deployment. */
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from 'aws-lambda';
import { endpointEnvironment, LOCAL_REGION, localCredentials } from '../../local/environment.ts';
import type { TestAws } from './aws.ts';

type HttpHandler = (event: APIGatewayProxyEvent, context: Context) => Promise<APIGatewayProxyResult>;

export type Answer = { status: number; body: Record<string, unknown>; headers: Record<string, unknown> };

export type Sent = {
  method?: 'GET' | 'POST';
  /** As in serverless.yml, e.g. `/connections/{id}`. */
  resource: string;
  path?: Record<string, string>;
  query?: Record<string, string>;
  /** Text is sent as it is, anything else as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
  base64?: boolean;
};

/** What a function reads at its first call, so set before. Without real credentials, and with AWS out of reach. */
export function setEnvironment(aws: TestAws, more: Record<string, string> = {}): void {
  Object.assign(process.env, {
    AWS_REGION: LOCAL_REGION,
    AWS_ACCESS_KEY_ID: localCredentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: localCredentials.secretAccessKey,
    AWS_ENDPOINT_URL: 'http://127.0.0.1:9',
    ...endpointEnvironment(aws.servers),
    CONNECTIONS_TABLE: aws.tables.connections,
    WORKERS_TABLE: aws.tables.workers,
    MESSAGES_TABLE: aws.tables.messages,
    QUEUE_URL: aws.queueUrl,
    LOG_LEVEL: 'silent',
    METRICS: 'log',
    SHARDS: '4',
    ...more,
  });
}

export async function call(handler: HttpHandler, sent: Sent): Promise<Answer> {
  const answer = await handler(apiEvent(sent), context());
  const body = JSON.parse(answer.body) as Record<string, unknown>;
  return { status: answer.statusCode, body, headers: answer.headers ?? {} };
}

export function context(remainingMs = 10_000): Context {
  return {
    awsRequestId: 'request-1',
    callbackWaitsForEmptyEventLoop: true,
    functionName: 'test',
    functionVersion: '$LATEST',
    invokedFunctionArn: 'arn:aws:lambda:us-east-1:000000000000:function:test',
    memoryLimitInMB: '256',
    logGroupName: 'test',
    logStreamName: 'test',
    getRemainingTimeInMillis: () => remainingMs,
    done: () => undefined,
    fail: () => undefined,
    succeed: () => undefined,
  };
}

/** What EventBridge sends by a schedule. */
export const scheduledEvent = {
  version: '0',
  id: '8a6f1f2e-0000-4000-8000-000000000001',
  'detail-type': 'Scheduled Event',
  source: 'aws.events',
  account: '000000000000',
  time: '2030-01-01T00:00:00Z',
  region: LOCAL_REGION,
  resources: ['arn:aws:events:us-east-1:000000000000:rule/reconcile'],
  detail: {},
};

export function apiEvent(sent: Sent): APIGatewayProxyEvent {
  const method = sent.method ?? (sent.body === undefined ? 'GET' : 'POST');
  const path = Object.entries(sent.path ?? {}).reduce(
    (text, [name, value]) => text.replace(`{${name}}`, value),
    sent.resource,
  );
  const text =
    sent.body === undefined || typeof sent.body === 'string' ? (sent.body ?? null) : JSON.stringify(sent.body);
  return {
    resource: sent.resource,
    path,
    httpMethod: method,
    headers: sent.headers ?? { 'content-type': 'application/json' },
    multiValueHeaders: {},
    queryStringParameters: sent.query ?? null,
    multiValueQueryStringParameters: null,
    pathParameters: sent.path ?? null,
    stageVariables: null,
    body: sent.base64 && text !== null ? Buffer.from(text).toString('base64') : text,
    isBase64Encoded: sent.base64 ?? false,
    requestContext: {
      accountId: '000000000000',
      apiId: 'api',
      authorizer: null,
      protocol: 'HTTP/1.1',
      httpMethod: method,
      identity: {
        accessKey: null,
        accountId: null,
        apiKey: 'key',
        apiKeyId: 'key-id',
        caller: null,
        clientCert: null,
        cognitoAuthenticationProvider: null,
        cognitoAuthenticationType: null,
        cognitoIdentityId: null,
        cognitoIdentityPoolId: null,
        principalOrgId: null,
        sourceIp: '192.0.2.1',
        user: null,
        userAgent: 'test',
        userArn: null,
      },
      path,
      stage: 'test',
      requestId: 'gateway-request-1',
      requestTimeEpoch: 0,
      resourceId: 'resource',
      resourcePath: sent.resource,
    },
  };
}
