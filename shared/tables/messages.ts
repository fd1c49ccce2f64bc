import { BatchWriteItemCommand, type DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import { z } from 'zod';
import { isOfNumbered, isUnnumbered, type Seq, type StoredKey, seqKey } from '../sequence.ts';
import type { Item } from './item.ts';

/** BatchWriteItem takes no more. */
export const batchSize = 25;

/** One item of the messages table: a whole frame, or a part of one that didn't fit. */
export type Message = {
  pk: string;
  sk: string;
  prev: string | undefined;
  /** Text as it came; base64 when `binary`. */
  data: string;
  binary: boolean;
  part: number;
  parts: number;
  timestampMs: number;
  workerId: string;
  epoch: number;
};

export type MessagesTable = ReturnType<typeof messagesTable>;

export function messagesTable(db: DynamoDBClient, table: string, options: { ttlMs: number }) {
  return {
    /**
     * Stores messages, each of them or not: a batch is no transaction. Writing one again is harmless.
     * @param mayWrite asked once more when the request is ready to go: making and signing it takes several turns, and the
     *                 process may be stopped for long in any of them
     * @returns those that DynamoDB left out; throws when it didn't answer, and then nothing is known of any
     */
    async store(messages: Message[], mayWrite: () => boolean, signal: AbortSignal): Promise<Message[]> {
      const requests = messages.map((message) => ({ PutRequest: { Item: toItem(message, options.ttlMs) } }));
      const command = new BatchWriteItemCommand({ RequestItems: { [table]: requests } });
      command.middlewareStack.add(
        (send) => async (request) => {
          if (!mayWrite()) throw new Error('not sent: it may not be written any more');
          return send(request);
        },
        // The last one before the network.
        { name: 'mayWrite', step: 'deserialize', priority: 'low' },
      );
      const answer = await db.send(command, { abortSignal: signal });
      const left = answer.UnprocessedItems?.[table];
      if (!left || left.length === 0) return [];
      const keys = new Set(left.map((request) => keyOf(request.PutRequest?.Item)));
      return messages.filter((message) => keys.has(`${message.pk}\n${message.sk}`));
    },

    /**
     * The newest keys of a connection, oldest first, from what its source numbers, back to `after` at most.
     * Frames without a number don't count towards `most`: each owner stores them under keys of its own, while numbers
     * come again under the same keys, so only of these there is a bound on how many can lie beyond a hole.
     * @param after what is known to be complete
     */
    async newestNumbered(
      pk: string,
      after: Seq | undefined,
      most: number,
    ): Promise<{ keys: StoredKey[]; truncated: boolean }> {
      const newestFirst: StoredKey[] = [];
      let numbered = 0;
      let from: Item | undefined;
      for (let pages = 0; pages < mostPages; pages++) {
        const answer = await db.send(
          new QueryCommand({
            TableName: table,
            KeyConditionExpression: after === undefined ? 'pk = :pk' : 'pk = :pk AND sk >= :after',
            ProjectionExpression: 'sk, prev_sk, part, parts',
            ExpressionAttributeValues: {
              ':pk': { S: pk },
              ...(after === undefined ? {} : { ':after': { S: seqKey(after) } }),
            },
            ScanIndexForward: false,
            ConsistentRead: true,
            Limit: most,
            ExclusiveStartKey: from,
          }),
        );
        const page = (answer.Items ?? []).map(toStoredKey);
        const keys = page.filter(({ sk }) => isOfNumbered(sk));
        const numbers = keys.filter(({ sk }) => !isUnnumbered(sk)).length;
        newestFirst.push(...keys);
        numbered += numbers;
        from = answer.LastEvaluatedKey;
        // A page that was cut by its size, and holds numbers only, is more than may be on its way at once.
        const megabyte = numbers > 0 && numbers === page.length && page.length < most;
        if (!from || numbered >= most || megabyte)
          return { keys: newestFirst.reverse(), truncated: from !== undefined };
      }
      // Too much of something else lies above them. Without a look at all that counts, only what is known is certain.
      return { keys: [], truncated: true };
    },
  };
}

/** Pages of one recovery. More stand above the numbers only where the source was of another kind meanwhile. */
const mostPages = 20;

function toStoredKey(item: Item): StoredKey {
  const row = storedRow.parse(unmarshall(item));
  return { sk: row.sk, prev: row.prev_sk, more: row.part < row.parts - 1 };
}

const storedRow = z.object({
  sk: z.string(),
  prev_sk: z.string().optional(),
  part: z.number().default(0),
  parts: z.number().default(1),
});

/** Written out by hand, without a marshaller: this runs for every message. */
function toItem(message: Message, ttlMs: number): Item {
  const item: Item = {
    pk: { S: message.pk },
    sk: { S: message.sk },
    message_data: { S: message.data },
    timestamp_ms: { N: String(message.timestampMs) },
    worker_id: { S: message.workerId },
    lease_epoch: { N: String(message.epoch) },
    expires_at: { N: String(Math.ceil((message.timestampMs + ttlMs) / 1000)) },
  };
  if (message.prev !== undefined) item['prev_sk'] = { S: message.prev };
  if (message.binary) item['encoding'] = { S: 'base64' };
  if (message.parts > 1) {
    item['part'] = { N: String(message.part) };
    item['parts'] = { N: String(message.parts) };
  }
  return item;
}

const keyOf = (item: Item | undefined): string => `${item?.['pk']?.S}\n${item?.['sk']?.S}`;
