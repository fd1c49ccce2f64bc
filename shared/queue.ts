import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { createBatcher } from './batcher.ts';
import type { Clock } from './clock.ts';
import { decodeWakeUp, encodeWakeUp, type WakeUp } from './wakeup.ts';

/** SQS takes and gives ten messages a request at most. */
export const queueBatch = 10;
const lingerMs = 5;
/** For the answer to a long poll, beyond the poll itself. */
const answerMs = 5000;

export type Received = {
  /** undefined: the message is no wake-up. Left alone, it ends in the dead-letter queue, where someone can look at it. */
  wakeUp: WakeUp | undefined;
  /** Acknowledges: the queue forgets the message. Not called: the queue offers it again after its visibility timeout. */
  done: () => Promise<void>;
  /** Gives it back: the queue offers it to others at once. */
  back: () => Promise<void>;
  /** What the sender was doing, as X-Ray names it: see trace.ts. */
  trace?: string | undefined;
};

export type Queue = {
  send(wakeUp: WakeUp): Promise<void>;
  /**
   * Waits for something to arrive, as long as the long poll lasts. It can't be aborted: SQS would go on with the poll that
   * nobody listens to any more, and hide what comes from everyone else for the visibility timeout.
   * @param most how many messages to take, 1 to 10
   */
  receive(most: number): Promise<Received[]>;
  /** About how many wake-ups wait to be taken. SQS counts approximately. */
  depth(): Promise<number>;
};

type Options = {
  queueUrl: string;
  longPollSeconds: number;
  clock: Clock;
  /** Asked at each wake-up that is sent: the trace to go on with. */
  traceHeader?: () => string | undefined;
};

export function sqsQueue(sqs: SQSClient, { queueUrl, longPollSeconds, clock, traceHeader }: Options): Queue {
  const batching = { clock, size: queueBatch, lingerMs };

  const send = createBatcher<{ body: string; trace: string | undefined }>(batching, async (messages) => {
    const Entries = messages.map(({ body, trace }, index) => ({
      Id: String(index),
      MessageBody: body,
      ...(trace === undefined ? {} : { MessageSystemAttributes: traceAttribute(trace) }),
    }));
    return faultsOf(await sqs.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries })));
  });

  const remove = createBatcher<string>(batching, async (handles) => {
    const Entries = handles.map((ReceiptHandle, index) => ({ Id: String(index), ReceiptHandle }));
    return faultsOf(await sqs.send(new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries })));
  });

  const giveBack = createBatcher<string>(batching, async (handles) => {
    const Entries = handles.map((ReceiptHandle, index) => ({ Id: String(index), ReceiptHandle, VisibilityTimeout: 0 }));
    return faultsOf(await sqs.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: queueUrl, Entries })));
  });

  return {
    send: (wakeUp) => send({ body: encodeWakeUp(wakeUp), trace: traceHeader?.() }),
    async receive(most) {
      const answer = await sqs.send(
        new ReceiveMessageCommand({
          QueueUrl: queueUrl,
          MaxNumberOfMessages: Math.min(most, queueBatch),
          WaitTimeSeconds: longPollSeconds,
          MessageSystemAttributeNames: ['AWSTraceHeader'],
        }),
        { requestTimeout: longPollSeconds * 1000 + answerMs },
      );
      return (answer.Messages ?? []).map((message) => ({
        wakeUp: decodeWakeUp(message.Body ?? ''),
        done: () => remove(message.ReceiptHandle ?? ''),
        back: () => giveBack(message.ReceiptHandle ?? ''),
        trace: message.Attributes?.['AWSTraceHeader'],
      }));
    },
    async depth() {
      const answer = await sqs.send(
        new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ['ApproximateNumberOfMessages'] }),
      );
      return Number(answer.Attributes?.['ApproximateNumberOfMessages'] ?? 0);
    },
  };
}

/** X-Ray's own place in a message: it isn't part of the body, and doesn't count towards its size. */
const traceAttribute = (trace: string) => ({ AWSTraceHeader: { DataType: 'String', StringValue: trace } });

function faultsOf(answer: {
  Failed?: { Id?: string | undefined; Code?: string | undefined }[] | undefined;
}): Map<number, Error> {
  return new Map((answer.Failed ?? []).map(({ Id, Code }) => [Number(Id), new Error(`refused by the queue: ${Code}`)]));
}
