import {
  BatchWriteItemCommand,
  DescribeTableCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
} from '@aws-sdk/client-dynamodb';
import { GetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { LOCAL_REGION, localCredentials } from '../../local/environment.ts';
import { startAws, type TestAws } from '../support/aws.ts';
import { type DynamoProxy, startDynamoProxy } from '../support/dynamo-proxy.ts';

let aws: TestAws;
let proxy: DynamoProxy;
let throughProxy: DynamoDBClient;

beforeAll(async () => {
  aws = await startAws({ namespace: 'local-aws' });
  proxy = await startDynamoProxy({ target: aws.servers.dynamodbUrl });
  throughProxy = new DynamoDBClient({
    endpoint: proxy.url,
    region: LOCAL_REGION,
    credentials: localCredentials,
    maxAttempts: 1,
  });
});

afterAll(async () => {
  throughProxy?.destroy();
  await proxy?.close();
  await aws?.stop();
});

const put = (sk: string) =>
  throughProxy.send(
    new PutItemCommand({ TableName: aws.tables.messages, Item: { pk: { S: 'CONN#a' }, sk: { S: sk } } }),
  );

const isThere = async (sk: string): Promise<boolean> => {
  const key = { pk: { S: 'CONN#a' }, sk: { S: sk } };
  return (await aws.dynamodb.send(new GetItemCommand({ TableName: aws.tables.messages, Key: key }))).Item !== undefined;
};

describe('what is made from the template', () => {
  test('tables have their keys and indexes', async () => {
    const { Table: table } = await aws.dynamodb.send(new DescribeTableCommand({ TableName: aws.tables.connections }));
    expect(table?.KeySchema).toEqual([{ AttributeName: 'pk', KeyType: 'HASH' }]);
    const indexes = table?.GlobalSecondaryIndexes?.map((index) => String(index.IndexName)) ?? [];
    expect(new Set(indexes)).toEqual(new Set(['by_desired_state', 'by_owner']));
  });

  test('the queue has its dead-letter queue', async () => {
    const { Attributes: attributes } = await aws.sqs.send(
      new GetQueueAttributesCommand({ QueueUrl: aws.queueUrl, AttributeNames: ['All'] }),
    );
    expect(attributes?.VisibilityTimeout).toBe('30');
    expect(JSON.parse(attributes?.RedrivePolicy ?? '')).toMatchObject({
      deadLetterTargetArn: expect.stringContaining('local-aws-wake-up-dead-letters'),
    });
  });

  test('namespaces on the same servers know nothing of each other', async () => {
    const other = await aws.namespace('local-aws-other');
    await put('0');
    const key = { pk: { S: 'CONN#a' }, sk: { S: '0' } };
    const { Item: item } = await aws.dynamodb.send(new GetItemCommand({ TableName: other.tables.messages, Key: key }));
    expect(item).toBeUndefined();
    expect(other.queueUrl).not.toBe(aws.queueUrl);
  });
});

describe('the proxy', () => {
  test('loses the answer of a write that was applied', async () => {
    proxy.control({ dropAnswerEvery: 1 });
    await expect(put('lost')).rejects.toThrow();
    proxy.control({ dropAnswerEvery: 0 });
    expect(await isThere('lost')).toBe(true);
  });

  test('is silent for a while, and what it took then is never applied', async () => {
    proxy.control({ silentForMs: 300 });
    const beganAt = performance.now();
    await expect(put('swallowed')).rejects.toThrow();
    expect(performance.now() - beganAt).toBeGreaterThan(250);
    await put('after');
    expect([await isThere('swallowed'), await isThere('after')]).toEqual([false, true]);
  });

  test('refuses as DynamoDB does, unapplied, and only the operations that are named', async () => {
    proxy.control({ failEvery: 1, failWith: 'ThrottlingException', operations: ['PutItem'] });
    await expect(put('throttled')).rejects.toMatchObject({ name: 'ThrottlingException' });
    const Key = { pk: { S: 'CONN#a' }, sk: { S: 'throttled' } };
    await throughProxy.send(new GetItemCommand({ TableName: aws.tables.messages, Key }));
    proxy.control({ failEvery: 0 });
    expect(await isThere('throttled')).toBe(false);
  });

  test('counts requests, and items that were put twice', async () => {
    proxy.control({ countPuts: true });
    proxy.resetCounts();
    const request = { PutRequest: { Item: { pk: { S: 'CONN#a' }, sk: { S: 'twice' } } } };
    await throughProxy.send(new BatchWriteItemCommand({ RequestItems: { [aws.tables.messages]: [request] } }));
    await put('twice');
    await put('once');
    expect(proxy.counts()).toMatchObject({
      byOperation: { BatchWriteItem: 1, PutItem: 2 },
      puts: 3,
      putTwice: { [`${aws.tables.messages}|CONN#a|twice`]: 2 },
    });
  });
});
