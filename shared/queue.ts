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

type Options = { queueUrl: string; longPollSeconds: number; clock: Clock };

export function sqsQueue(sqs: SQSClient, { queueUrl, longPollSeconds, clock }: Options): Queue {
  const batching = { clock, size: queueBatch, lingerMs };

  const send = createBatcher<WakeUp>(batching, async (wakeUps) => {
    const Entries = wakeUps.map((wakeUp, index) => ({ Id: String(index), MessageBody: encodeWakeUp(wakeUp) }));
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
    send,
    async receive(most) {
      const answer = await sqs.send(
        new ReceiveMessageCommand({
          QueueUrl: queueUrl,
          MaxNumberOfMessages: Math.min(most, queueBatch),
          WaitTimeSeconds: longPollSeconds,
        }),
        { requestTimeout: longPollSeconds * 1000 + answerMs },
      );
      return (answer.Messages ?? []).map((message) => ({
        wakeUp: decodeWakeUp(message.Body ?? ''),
        done: () => remove(message.ReceiptHandle ?? ''),
        back: () => giveBack(message.ReceiptHandle ?? ''),
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

function faultsOf(answer: {
  Failed?: { Id?: string | undefined; Code?: string | undefined }[] | undefined;
}): Map<number, Error> {
  return new Map((answer.Failed ?? []).map(({ Id, Code }) => [Number(Id), new Error(`refused by the queue: ${Code}`)]));
}
