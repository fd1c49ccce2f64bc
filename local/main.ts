/**
 * `npm start -- [--workers 2] [--no-source]`: the whole system on this machine, until Ctrl-C.
 * Every variable of the configuration that is set for it (`LEASE_SECONDS=8 HEARTBEAT_EVERY=2 npm start`) holds for workers and functions.
 */
import { relative } from 'node:path';
import { parseArgs } from 'node:util';
import { bold, dim, messageOf, red, say, step } from './console.ts';
import { System } from './system.ts';
import type { StoppedTask } from './worker-process.ts';

const { values: flags } = parseArgs({
  options: { workers: { type: 'string', default: '2' }, source: { type: 'boolean', default: true } },
  allowNegative: true,
});
const workers = Number(flags.workers);
if (!Number.isInteger(workers) || workers < 0) {
  say(`--workers must be a whole number, not ${flags.workers}`);
  process.exit(2);
}

let stopping = false;
const system = new System({
  workers,
  source: flags.source,
  onStep: step,
  onDied: (error) => {
    say(`\n${red('✘')} ${error.message}`);
    stop(1);
  },
  onTaskStopped: describeStop,
});
process.on('SIGINT', () => stop(0));
process.on('SIGTERM', () => stop(0));

say(bold('holdfast, on this machine'));
try {
  await system.start();
  introduce();
} catch (error) {
  if (!stopping) fail(error);
}

/** The first time in order, the second time at once. */
function stop(exitCode: number): void {
  if (!stopping)
    say('\nEnding: workers hand over, then the rest stops; that takes up to a long poll (10 s). Ctrl-C again to kill.');
  const ended = stopping ? system.stopNow() : system.stop();
  stopping = true;
  ended.then(() => process.exit(exitCode), fail);
}

function fail(error: unknown): void {
  say(`\n${red('✘')} ${messageOf(error)}`);
  say(dim(`  logs are in ${here(system.logDir)}/`));
  process.exit(1);
}

function describeStop(task: StoppedTask): void {
  const how = task.signal === null ? `exit code ${task.exitCode}` : task.signal;
  const next = stopping ? '' : '; a new one is being started';
  say(`  worker ${task.workerId ?? '(not yet named)'} ended (${how})${next}`);
}

function introduce(): void {
  const rows = [
    ['API', system.apiUrl, 'api.log'],
    ['DynamoDB', system.dynamodbUrl, 'dynamodb.log'],
    ['SQS', system.queueUrl, 'sqs.log'],
    ...(flags.source ? [['source', system.sourceUrl, 'source.log']] : []),
    ...system.workers.map((worker) => [
      `worker ${worker.number}`,
      `pid ${worker.pid}`,
      relative(system.logDir, worker.logFile),
    ]),
  ];
  say();
  for (const [what = '', where = '', log = ''] of rows) {
    say(`  ${what.padEnd(10)} ${where.padEnd(62)} ${dim(`${here(system.logDir)}/${log}`)}`);
  }
  say(`\n${bold('Try it')} ${dim('(all of it is in .local/state.json too)')}`);
  for (const [comment, command] of examples()) say(`\n  ${dim(`# ${comment}`)}\n  ${command}`);
  say(`\nCtrl-C ends everything.`);
}

function examples(): [string, string][] {
  const curl = `curl -s -H 'x-api-key: ${system.apiKey}'`;
  const post = (body: object): string =>
    `${curl} -H 'content-type: application/json' ${system.apiUrl}/events -d '${JSON.stringify(body)}'`;
  const wsUrl = flags.source ? `${system.sourceUrl}/demo-1?last_seq={last_seq}` : 'wss://echo.websocket.org';
  const source = flags.source ? { source: { name: 'numbered' } } : {};
  return [
    ['hold a connection', post({ event_type: 'START', connection_id: 'demo-1', ws_url: wsUrl, ...source })],
    ['who holds it, and where it is', `${curl} ${system.apiUrl}/connections/demo-1`],
    ['the fleet', `${curl} ${system.apiUrl}/fleet`],
    ['its last messages', 'npx node local/messages.ts demo-1'],
    ...(flags.source
      ? ([['what the source saw of it', `curl -s '${system.sourceUrl.replace('ws:', 'http:')}/report?id=demo-1'`]] as [
          string,
          string,
        ][])
      : []),
    ['kill a worker and watch the fleet recover', `kill -9 ${system.workers[0]?.pid ?? '<pid>'}`],
    ['let it go', post({ event_type: 'STOP', connection_id: 'demo-1' })],
  ];
}

function here(path: string): string {
  return relative(process.cwd(), path) || '.';
}
