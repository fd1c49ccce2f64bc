import { spawn } from 'node:child_process';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { baseEnvironment, workerEnvironment } from '../../local/environment.ts';
import { startAws, type TestAws } from '../support/aws.ts';
import { shortTimes } from '../support/e2e.ts';

/** Far past what clocks may differ here: 0.5 s between two machines. */
const aheadMs = 5_000;
let aws: TestAws;
let shifted: Server;
const offset = { ms: 0 };

/** A store whose clock is off: its answers carry another date. */
beforeAll(async () => {
  aws = await startAws({ namespace: 'clock-skew' });
  const target = new URL(aws.servers.dynamodbUrl);
  shifted = createServer((incoming, response) => {
    const { method, url, headers } = incoming;
    const outgoing = httpRequest({ host: target.hostname, port: target.port, method, path: url, headers }, (answer) => {
      const date = new Date(Date.now() + offset.ms).toUTCString();
      response.writeHead(answer.statusCode ?? 502, { ...answer.headers, date });
      answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    incoming.pipe(outgoing);
  });
  await new Promise<void>((resolve) => shifted.listen(0, '127.0.0.1', resolve));
}, 60_000);
afterAll(async () => {
  shifted?.closeAllConnections();
  await new Promise((resolve) => shifted?.close(resolve));
  await aws?.stop();
});

/** A worker until it ends, or until it has registered and is told to stop. */
function run(): Promise<{ code: number | null; events: { event: string; level: string }[] }> {
  const dynamodbUrl = `http://127.0.0.1:${(shifted.address() as AddressInfo).port}`;
  const endpoints = { dynamodbUrl, sqsUrl: aws.servers.sqsUrl };
  const env = workerEnvironment({ ...baseEnvironment(process.env), ...shortTimes }, endpoints, aws);
  const script = join(import.meta.dirname, '..', '..', 'worker', 'main.ts');
  const child = spawn(process.execPath, [script], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  let told = false;
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    if (output.includes('worker.registered') && !told) told = child.kill('SIGTERM');
  });
  return new Promise((resolve) =>
    child.once('close', (code) => {
      const lines = output.trim().split('\n');
      resolve({ code, events: lines.map((line) => JSON.parse(line) as { event: string; level: string }) });
    }),
  );
}

test.each([
  ['behind', aheadMs],
  ['ahead of', -aheadMs],
])(
  'a worker whose clock is far %s the store’s does not start: exit code 5, and one line that says why',
  async (_how, ms) => {
    offset.ms = ms;
    const { code, events } = await run();
    expect(code).toBe(5);
    expect(events.map(({ event }) => event).sort()).toEqual(['clock.skewed', 'worker.ended', 'worker.started']);
    const said = events.find(({ event }) => event === 'clock.skewed');
    expect(said).toMatchObject({ level: 'error', ahead_ms: expect.any(Number), allowed_ms: 250 });
    expect(Math.abs(Number((said as unknown as { ahead_ms: number }).ahead_ms) + ms)).toBeLessThan(1_000);
  },
  30_000,
);

test('a worker whose clock is in step starts', async () => {
  offset.ms = 0;
  const { code, events } = await run();
  expect([code, events.some(({ event }) => event === 'clock.skewed')]).toEqual([0, false]);
}, 30_000);
