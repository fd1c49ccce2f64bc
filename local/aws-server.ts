/** Embedded DynamoDB or SQS, as a process of its own: `node local/aws-server.ts dynamodb|sqs [port]`. Everything is kept in memory. */
import type { AddressInfo } from 'node:net';
import dynalite from 'dynalite';
import { startFauxqs } from 'fauxqs';
import { reportReady } from './ready.ts';

const [kind, port = '0'] = process.argv.slice(2);

if (kind === 'dynamodb') {
  const server = dynalite({ createTableMs: 0, deleteTableMs: 0, updateTableMs: 0 });
  // The SDK keeps its connections; a server that closes an idle one just as a request is on its way costs that request.
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve) => server.listen(Number(port), '127.0.0.1', resolve));
  reportReady((server.address() as AddressInfo).port, async () => {
    server.closeAllConnections();
  });
} else if (kind === 'sqs') {
  const server = await startFauxqs({ port: Number(port), logger: false });
  reportReady(server.port, () => server.stop());
} else {
  console.error('usage: node local/aws-server.ts dynamodb|sqs [port]');
  process.exit(2);
}
