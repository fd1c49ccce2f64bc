/**
 * Stands before moto and puts one of its answers right. A resource of a kind that moto doesn't know is a hole in its list, and asked
 * for one resource behind a hole it fails with a 500. Its list itself is sound, so the answer is looked up there.
 */
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { LOCAL_REGION, localCredentials } from '../../../local/environment.ts';
import { madeResources } from './resources.ts';

export interface Front {
  readonly url: string;
  stop(): Promise<void>;
}

export async function startFront(target: string): Promise<Front> {
  const moto = new CloudFormationClient({ endpoint: target, region: LOCAL_REGION, credentials: localCredentials });
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const { method, headers } = request;
      const passed = httpRequest(new URL(request.url ?? '/', target), { method, headers }, (answer) => {
        if (answer.statusCode === 500 && body.includes('Action=DescribeStackResource&')) {
          answer.resume();
          void lookUp(moto, new URLSearchParams(body.toString())).then(({ status, xml }) =>
            response.writeHead(status, { 'content-type': 'text/xml' }).end(xml),
          );
          return;
        }
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      passed.on('error', () => response.destroy());
      passed.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the front has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    async stop() {
      moto.destroy();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function lookUp(moto: CloudFormationClient, asked: URLSearchParams): Promise<{ status: number; xml: string }> {
  const [stack, id] = [asked.get('StackName') ?? '', asked.get('LogicalResourceId') ?? ''];
  const physical = (await madeResources({ cloudformation: moto }, stack))[id];
  if (physical !== undefined) {
    const detail = `<LogicalResourceId>${id}</LogicalResourceId><PhysicalResourceId>${physical}</PhysicalResourceId>`;
    const result = `<DescribeStackResourceResult><StackResourceDetail>${detail}</StackResourceDetail></DescribeStackResourceResult>`;
    return { status: 200, xml: `<DescribeStackResourceResponse ${xmlns}>${result}</DescribeStackResourceResponse>` };
  }
  const message = `Resource ${id} does not exist for stack ${stack}`;
  const error = `<Error><Type>Sender</Type><Code>ValidationError</Code><Message>${message}</Message></Error>`;
  return { status: 400, xml: `<ErrorResponse ${xmlns}>${error}</ErrorResponse>` };
}

const xmlns = 'xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"';
