import { SQSClient } from '@aws-sdk/client-sqs';
import { expect, test } from '@jest/globals';
import { systemClock } from '../../shared/clock.ts';
import { sqsQueue } from '../../shared/queue.ts';

test('each wake-up carries the trace of the moment it was sent in, also when a request takes several', async () => {
  const sent: unknown[] = [];
  const sqs = new SQSClient({ region: 'us-east-1' });
  const answer = (request: { input: object }) => {
    sent.push(request.input);
    return Promise.resolve({ output: { $metadata: {} }, response: {} });
  };
  sqs.middlewareStack.add(() => answer, { step: 'initialize', priority: 'high' });
  let trace: string | undefined = 'Root=1-a;Sampled=1';
  const queue = sqsQueue(sqs, {
    queueUrl: 'http://queue',
    longPollSeconds: 1,
    clock: systemClock,
    traceHeader: () => trace,
  });
  const traced = queue.send({ pk: 'CONN#a' });
  trace = undefined;
  await Promise.all([traced, queue.send({ pk: 'CONN#b' })]);
  const attribute = { AWSTraceHeader: { DataType: 'String', StringValue: 'Root=1-a;Sampled=1' } };
  expect(sent).toMatchObject([
    {
      Entries: [
        { Id: '0', MessageBody: '{"pk":"CONN#a"}', MessageSystemAttributes: attribute },
        { Id: '1', MessageBody: '{"pk":"CONN#b"}' },
      ],
    },
  ]);
});
