/**
 * What the local system stored. As a program it shows one connection's messages: `npx node local/messages.ts demo-1 [--last 5]`.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb';
import { dynamodbClient } from './aws.ts';
import type { LocalState } from './state.ts';

export interface StoredMessage {
  key: string;
  /** `NaN` for a source that doesn't number. */
  seq: number;
  timestampMs: number;
  workerId: string;
  epoch: number;
  data: string;
}

/** All messages of one connection of a `numbered` source, by position. */
export async function storedMessages(dynamodb: DynamoDBClient, table: string, id: string): Promise<StoredMessage[]> {
  const messages: StoredMessage[] = [];
  let start: QueryCommand['input']['ExclusiveStartKey'];
  do {
    const page = await dynamodb.send(
      new QueryCommand({
        TableName: table,
        KeyConditionExpression: 'pk = :pk',
        ExpressionAttributeValues: { ':pk': { S: `CONN#${id}` } },
        ExclusiveStartKey: start,
      }),
    );
    for (const item of page.Items ?? []) {
      messages.push({
        key: item.sk?.S ?? '',
        seq: Number(item.sk?.S),
        timestampMs: Number(item.timestamp_ms?.N),
        workerId: item.worker_id?.S ?? '',
        epoch: Number(item.lease_epoch?.N),
        data: item.message_data?.S ?? '',
      });
    }
    start = page.LastEvaluatedKey;
  } while (start !== undefined);
  return messages;
}

/** The numbers below the highest stored one that aren't there. */
export function missing(messages: StoredMessage[]): number[] {
  const stored = new Set(messages.map((message) => message.seq).filter((seq) => !Number.isNaN(seq)));
  const highest = Math.max(0, ...stored);
  return Array.from({ length: highest }, (_, index) => index + 1).filter((seq) => !stored.has(seq));
}

async function show(id: string, last: number): Promise<void> {
  const file = join(import.meta.dirname, '..', '.local', 'state.json');
  const state = JSON.parse(await readFile(file, 'utf8')) as LocalState;
  const dynamodb = dynamodbClient(state.dynamodbUrl);
  const messages = await storedMessages(dynamodb, state.tables.messages, id);
  dynamodb.destroy();
  for (const { key, seq, timestampMs, workerId, epoch, data } of messages.slice(-last)) {
    console.log(
      `${Number.isNaN(seq) ? key : seq}\t${new Date(timestampMs).toISOString()}\t${workerId}\tepoch ${epoch}\t${data}`,
    );
  }
  const numbered = messages.some(({ seq }) => !Number.isNaN(seq));
  console.log(`${messages.length} messages${numbered ? `, ${missing(messages).length} missing` : ''}`);
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { last: { type: 'string', default: '5' } },
    allowPositionals: true,
  });
  const [id] = positionals;
  if (id === undefined) throw new Error('which connection? npx node local/messages.ts <connection id>');
  await show(id, Number(values.last));
}
