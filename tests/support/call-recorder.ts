/**
 * Stands before AWS and writes down who asks for what. Whoever calls signs with a key id that says who it is; the signature also names the
 * service. DynamoDB and SQS are the embedded ones; ECS and CloudWatch, which aren't embedded, get the answer that suits here.
 */
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Permission } from './permissions.ts';

export type Call = { by: string; service: string; operation: string; permissions: Permission[] };

export interface CallRecorder {
  readonly url: string;
  calls(): Call[];
  /** The next call of this operation is answered with a refusal. */
  refuseNext(operation: string): void;
  stop(): Promise<void>;
}

type Targets = { dynamodbUrl: string; sqsUrl: string };

/** @param tables name -> its name in the template */
export async function startCallRecorder(targets: Targets, tables: Record<string, string>): Promise<CallRecorder> {
  const calls: Call[] = [];
  const refused = new Set<string>();
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const call = read(request, body, tables);
      calls.push(call);
      if (refused.delete(call.operation)) response.writeHead(403).end('{"__type":"AccessDenied"}');
      else if (call.service === 'dynamodb') pass(targets.dynamodbUrl, request, body, response);
      else if (call.service === 'sqs') pass(targets.sqsUrl, request, body, response);
      else if (call.service === 'ecs') response.end('{"tasks":[],"failures":[{"reason":"MISSING"}]}');
      else
        response
          .writeHead(200, { 'content-type': 'application/cbor', 'smithy-protocol': 'rpc-v2-cbor' })
          .end('\xa0', 'latin1');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the recorder has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    calls: () => calls,
    refuseNext: (operation) => void refused.add(operation),
    async stop() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function read({ headers, url }: IncomingMessage, body: Buffer, tables: Record<string, string>): Call {
  const [, by = '', signed = ''] = /Credential=([^/]+)\/\d+\/[^/]+\/([^/]+)\//.exec(headers.authorization ?? '') ?? [];
  const service = signed === 'monitoring' ? 'cloudwatch' : signed;
  const target =
    String(headers['x-amz-target'] ?? '')
      .split('.')
      .at(-1) ||
    (url ?? '').split('/').at(-1) ||
    '';
  const json = service === 'cloudwatch' ? {} : (JSON.parse(body.toString() || '{}') as Record<string, unknown>);
  const names = resourcesOf(service, json).map((name) => name.replace(/^[^/]+/, (table) => tables[table] ?? table));
  return {
    by,
    service,
    operation: target,
    permissions: names.map((name) => `${service}:${actionOf(target)} ${name}` as const),
  };
}

/** SQS has one action for a message and for a batch of them. DynamoDB's batches have their own. */
const actionOf = (operation: string): string => operation.replace(/^(\w+Message\w*)Batch$/, '$1');

function resourcesOf(service: string, body: Record<string, unknown>): string[] {
  if (service === 'sqs') return ['WakeUpQueue'];
  if (service === 'ecs') return ['Cluster/task'];
  if (service !== 'dynamodb') return ['*'];
  const { TableName: table, IndexName: index, RequestItems: batch } = body;
  if (typeof batch === 'object' && batch !== null) return Object.keys(batch);
  return [typeof index === 'string' ? `${String(table)}/index/${index}` : String(table)];
}

function pass(target: string, request: IncomingMessage, body: Buffer, response: ServerResponse): void {
  const { method, headers } = request;
  const passed = httpRequest(new URL(request.url ?? '/', target), { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  passed.on('error', () => response.destroy());
  passed.end(body);
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
