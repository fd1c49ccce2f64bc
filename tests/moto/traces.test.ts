import { SendMessageCommand } from '@aws-sdk/client-sqs';
import { BatchGetTracesCommand, XRayClient } from '@aws-sdk/client-xray';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { sqsClient } from '../../local/aws.ts';
import { LOCAL_REGION, localCredentials } from '../../local/environment.ts';
import { systemClock as clock } from '../../shared/clock.ts';
import { sqsQueue } from '../../shared/queue.ts';
import { encodeWakeUp } from '../../shared/wakeup.ts';
import { createTraces, toXRay } from '../../worker/traces.ts';
import { type Moto, startMoto } from '../support/moto.ts';
import { countedMetrics, keptLog } from '../support/worker-parts.ts';

// X-Ray refuses traces that are older than a month: the time stands in their ids.
const traceId = `1-${Math.floor(Date.now() / 1000).toString(16)}-bd862e3fe1be46a994272793`;
const header = `Root=${traceId};Parent=53995c3f42cd8ad8;Sampled=1`;

describe('a trace, in moto', () => {
  let moto: Moto;
  beforeAll(async () => {
    moto = await startMoto({ namespace: 'traces' });
  });
  afterAll(() => moto?.stop());

  test('comes with the wake-up, beside its body', async () => {
    const sqs = sqsClient(moto.url);
    const queue = sqsQueue(sqs, { queueUrl: moto.queueUrl, longPollSeconds: 1, clock });
    const MessageBody = encodeWakeUp({ pk: 'CONN#traced' });
    // One by one: moto keeps the attribute of such a message, and forgets that of a batch.
    const MessageSystemAttributes = { AWSTraceHeader: { DataType: 'String', StringValue: header } };
    await sqs.send(new SendMessageCommand({ QueueUrl: moto.queueUrl, MessageBody, MessageSystemAttributes }));
    const [received] = await queue.receive(10);
    expect([received?.wakeUp?.pk, received?.trace]).toEqual(['CONN#traced', header]);
    sqs.destroy();
  });

  test('is completed by the worker’s segment, which X-Ray takes and shows', async () => {
    const xray = new XRayClient({ endpoint: moto.url, region: LOCAL_REGION, credentials: localCredentials });
    const metrics = countedMetrics();
    const traces = createTraces({ name: 'holdfast-test-worker', send: toXRay(xray), clock, log: keptLog(), metrics });
    const trace = traces.begin(header);
    trace?.annotate({ connection: 'CONN#traced', epoch: 7 });
    trace?.step('claim')();
    trace?.end();
    const stop = new AbortController();
    const sending = traces.sendUntil(stop.signal);
    stop.abort();
    await sending;
    expect(metrics.of('TracesDropped')).toBe(0);
    const { Traces } = await xray.send(new BatchGetTracesCommand({ TraceIds: [traceId] }));
    const documents = (Traces?.[0]?.Segments ?? []).map(
      ({ Document }) => JSON.parse(Document ?? '{}') as { name: string },
    );
    expect(documents.map(({ name }) => name).sort()).toEqual(['claim', 'holdfast-test-worker']);
  });
});
