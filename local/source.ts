/**
 * A source to dial, as a process of its own: `node local/source.ts --port 0`.
 *
 *   ws://127.0.0.1:PORT/<connection id>?last_seq=17     &rate=1 messages a second, &size=16 bytes each, &binary=1
 *   GET  /report, /report?id=<connection id>            what it saw
 *   POST /control                                       what it shall do wrong (source/faults.ts)
 */
import { parseArgs } from 'node:util';
import { reportReady } from './ready.ts';
import { startSourceServer } from './source/server.ts';

const { values } = parseArgs({ options: { port: { type: 'string', default: '0' } } });
const server = await startSourceServer(Number(values.port));
reportReady(server.port, () => server.close());
