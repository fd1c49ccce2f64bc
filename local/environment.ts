/** The environment that the parts of the local system get: what the caller's has, minus everything that could reach a real AWS account. */

import type { Namespace } from './aws.ts';

/** `serverless.yml` gives the functions' tables this name in stage `local`. */
export const NAMESPACE = 'holdfast-local';
export const LOCAL_REGION = 'us-east-1';
export const LOCAL_API_KEY = 'local-api-key-of-holdfast';

/** Any key will do; the embedded services don't look at it. */
export const localCredentials = { accessKeyId: 'local', secretAccessKey: 'local' };

export interface Endpoints {
  dynamodbUrl: string;
  sqsUrl: string;
}

/** Without endpoints, for parts that need none. */
export function baseEnvironment(own: NodeJS.ProcessEnv): Record<string, string> {
  const kept = Object.entries(own).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !entry[0].startsWith('AWS_'),
  );
  return {
    ...Object.fromEntries(kept),
    AWS_REGION: LOCAL_REGION,
    AWS_DEFAULT_REGION: LOCAL_REGION,
    AWS_ACCESS_KEY_ID: localCredentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: localCredentials.secretAccessKey,
    AWS_EC2_METADATA_DISABLED: 'true',
    // Whatever service isn't embedded has nobody there, rather than a real account.
    AWS_ENDPOINT_URL: 'http://127.0.0.1:9',
    SLS_TELEMETRY_DISABLED: '1',
    SLS_NOTIFICATIONS_MODE: 'off',
  };
}

export function endpointEnvironment({ dynamodbUrl, sqsUrl }: Endpoints): Record<string, string> {
  return { AWS_ENDPOINT_URL_DYNAMODB: dynamodbUrl, AWS_ENDPOINT_URL_SQS: sqsUrl };
}

/** What `node worker/main.ts` needs. @param base may set the configuration's other variables */
export function workerEnvironment(
  base: Record<string, string>,
  endpoints: Endpoints,
  { tables, queueUrl }: Namespace,
): Record<string, string> {
  return {
    ALLOWED_HOSTS: '127.0.0.1,localhost',
    METRICS: 'log',
    SERVICE_NAME: NAMESPACE,
    ...base,
    ...endpointEnvironment(endpoints),
    CONNECTIONS_TABLE: tables.connections,
    WORKERS_TABLE: tables.workers,
    MESSAGES_TABLE: tables.messages,
    QUEUE_URL: queueUrl,
  };
}
