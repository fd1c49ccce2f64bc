import { type DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import { z } from 'zod';
import type { Item } from './item.ts';

/** A frame as its source sent it, put together again from its parts. */
export type StoredFrame = {
  /** The sort key of its first part. */
  key: string;
  data: Buffer;
  binary: boolean;
  /** false: a part of it isn't there, or not yet. */
  complete: boolean;
  timestampMs: number;
  workerId: string;
  epoch: number;
};

export type StoredMessages = ReturnType<typeof storedMessages>;

/** What was stored, for people to look at. Workers write and recover through `messages.ts`. */
export function storedMessages(db: DynamoDBClient, table: string) {
  return {
    /** The newest frames of a connection, oldest first. */
    async newest(pk: string, most: number): Promise<StoredFrame[]> {
      const rows: Row[] = [];
      let from: Item | undefined;
      do {
        const answer = await db.send(
          new QueryCommand({
            TableName: table,
            KeyConditionExpression: 'pk = :pk',
            ExpressionAttributeValues: { ':pk': { S: pk } },
            ScanIndexForward: false,
            ConsistentRead: true,
            ExclusiveStartKey: from,
            Limit: most,
          }),
        );
        rows.push(...(answer.Items ?? []).map((item) => row.parse(unmarshall(item))));
        from = answer.LastEvaluatedKey;
        // The first part comes last.
      } while (from && rows.filter(({ part }) => part === 0).length < most);
      return framesOf(rows.reverse()).slice(-most);
    },
  };
}

const row = z.object({
  sk: z.string(),
  message_data: z.string(),
  encoding: z.literal('base64').optional(),
  part: z.number().default(0),
  parts: z.number().default(1),
  timestamp_ms: z.number().default(0),
  worker_id: z.string().default(''),
  lease_epoch: z.number().default(0),
});

type Row = z.infer<typeof row>;

/** @param rows in the order of their keys: the parts of a frame stand together, in order */
function framesOf(rows: Row[]): StoredFrame[] {
  const frames = Map.groupBy(rows, ({ sk }) => sk.replace(/#p\d+$/, ''));
  return [...frames].flatMap(([key, parts]) => {
    const [first] = parts;
    if (!first) return [];
    const binary = first.encoding === 'base64';
    return {
      key,
      data: Buffer.concat(parts.map(({ message_data }) => Buffer.from(message_data, binary ? 'base64' : 'utf8'))),
      binary,
      complete: parts.length === first.parts,
      timestampMs: first.timestamp_ms,
      workerId: first.worker_id,
      epoch: first.lease_epoch,
    };
  });
}
