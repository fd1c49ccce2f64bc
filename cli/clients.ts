import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { ECSClient } from '@aws-sdk/client-ecs';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { SQSClient } from '@aws-sdk/client-sqs';

export type Clients = ReturnType<typeof clientsFor>;

type Where = {
  /** Unset: the SDK finds it, in the environment or the profile. */
  region?: string | undefined;
  /** Unset: the region's own. */
  endpoints?: { dynamodb: string; sqs: string; lambda: string } | undefined;
  credentials?: { accessKeyId: string; secretAccessKey: string } | undefined;
};

/** Somebody is waiting for an answer, and nothing is owned here: the SDK may try again, but not for long. */
export function clientsFor({ region, endpoints, credentials }: Where) {
  const options = (endpoint: string | undefined) => ({
    maxAttempts: 3,
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
  });
  return {
    dynamodb: new DynamoDBClient(options(endpoints?.dynamodb)),
    sqs: new SQSClient(options(endpoints?.sqs)),
    lambda: new LambdaClient(options(endpoints?.lambda)),
    ecs: new ECSClient(options(undefined)),
  };
}
