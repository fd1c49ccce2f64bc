/** AWS clients of one process: each request takes its time there and back, and only so many are on their way at once. */
import { type CloudWatchClient, PutMetricDataCommand } from '@aws-sdk/client-cloudwatch';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { SQSClient } from '@aws-sdk/client-sqs';
import pLimit from 'p-limit';
import type { DateSample } from '../../shared/skew.ts';
import type { Ledger, Who } from './ledger.ts';
import type { QueueService } from './queue-service.ts';
import type { Store } from './store.ts';
import type { Host, Time } from './time.ts';

/** Mean times of one request, there and back. Each one takes between half and one and a half times that. */
export type Latencies = { dynamodbMs: number; sqsMs: number; cloudwatchMs: number };

/** In one region, as AWS says of them: "single-digit milliseconds" (DynamoDB) and "tens of milliseconds" (SQS). */
export const usualLatencies: Latencies = { dynamodbMs: 6, sqsMs: 15, cloudwatchMs: 30 };

export type Services = {
  time: Time;
  store: Store;
  queue: QueueService;
  ledger: Ledger;
  latencies: Latencies;
  random: () => number;
};

/** As in shared/aws.ts's callers. */
const sockets = 50;

type Command = { readonly input: object };

export function clientsOf(services: Services, host: Host, who: Who, onDate: (sample: DateSample) => void = () => {}) {
  const { time, store, queue, ledger, latencies, random } = services;
  const clock = time.clockOf(host);

  /** What has left the process arrives, even if the process is gone by then; the answer arrives only if it isn't. */
  function sender(meanMs: number, carryOut: (command: Command) => object | Promise<object>) {
    const slot = pLimit(sockets);
    const send = (command: Command) =>
      slot(async () => {
        const wayMs = (meanMs * (0.5 + random())) / 2;
        await time.pass(wayMs);
        const answer = await carryOut(command);
        await clock.sleep(wayMs);
        if (answer instanceof Error) throw answer;
        return answer;
      });
    return { send };
  }

  const dynamodb = sender(latencies.dynamodbMs, (command) => {
    const { answer, uses, fault } = store.execute(command);
    ledger.store(who, nameOf(command), uses, fault !== undefined);
    const nowMs = clock.now();
    onDate({ sentAtMs: nowMs, answeredAtMs: nowMs, dateMs: Math.floor(nowMs / 1000) * 1000 });
    return fault ?? answer;
  });
  const sqs = sender(latencies.sqsMs, (command) => {
    ledger.request(who, nameOf(command), 'sqs');
    return queue.execute(command, host);
  });
  const cloudwatch = sender(latencies.cloudwatchMs, (command) => {
    ledger.request(who, nameOf(command), 'cloudwatch');
    if (command instanceof PutMetricDataCommand) {
      for (const { MetricName = '' } of command.input.MetricData ?? []) ledger.metricNames.add(MetricName);
    }
    return {};
  });
  // Nothing of the clients is used but `send`.
  return {
    dynamodb: dynamodb as unknown as DynamoDBClient,
    sqs: sqs as unknown as SQSClient,
    cloudwatch: cloudwatch as unknown as CloudWatchClient,
  };
}

const nameOf = (command: Command): string => command.constructor.name.replace('Command', '');
