import { CloudWatchClient } from '@aws-sdk/client-cloudwatch';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SQSClient } from '@aws-sdk/client-sqs';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { z } from 'zod';
import type { Clock } from './clock.ts';
import type { DateSample } from './skew.ts';

export type ClientOptions = {
  requestTimeoutMs: number;
  maxSockets: number;
  /** More than one only where nothing is owned, so that a write that comes again and late does no harm. */
  maxAttempts?: number;
};

/**
 * Built in entry points only, and passed in from there. Region, credentials and endpoints come from the SDK's own
 * variables (`AWS_REGION`, `AWS_ENDPOINT_URL_DYNAMODB`, …).
 *
 * The SDK retries nothing unless told to. Its retry would send a write again behind the back of the code that has to know whether
 * it still owns what it writes to: a worker frozen in the middle of a request would send it once more on waking.
 */
export function awsClients(given: ClientOptions) {
  const options = () => clientOptions(given);
  return {
    dynamodb: new DynamoDBClient(options()),
    sqs: new SQSClient(options()),
    /** Nothing depends on an answer here, and what isn't answered is published again. */
    cloudwatch: new CloudWatchClient({ ...options(), maxAttempts: 2 }),
  };
}

/** For a client that only one entry point needs. */
export function clientOptions({ requestTimeoutMs, maxSockets, maxAttempts = 1 }: ClientOptions) {
  return {
    maxAttempts,
    requestHandler: new NodeHttpHandler({
      connectionTimeout: Math.min(1000, requestTimeoutMs),
      requestTimeout: requestTimeoutMs,
      throwOnRequestTimeout: true,
      httpAgent: { keepAlive: true, maxSockets },
      httpsAgent: { keepAlive: true, maxSockets },
    }),
  };
}

const answerWithDate = z.object({ headers: z.object({ date: z.string() }) });

/** Shows the `Date` header of each of the store's answers to `onDate`, for the comparison of clocks. */
export function watchDates(dynamodb: DynamoDBClient, clock: Clock, onDate: (sample: DateSample) => void): void {
  dynamodb.middlewareStack.add(
    (next) => async (args) => {
      const sentAtMs = clock.now();
      const result = await next(args);
      const dateMs = Date.parse(answerWithDate.safeParse(result.response).data?.headers.date ?? '');
      if (!Number.isNaN(dateMs)) onDate({ sentAtMs, answeredAtMs: clock.now(), dateMs });
      return result;
    },
    // Next to the wire: the time that serialization takes isn't the answer's.
    { step: 'deserialize', priority: 'low', name: 'watchDates' },
  );
}
