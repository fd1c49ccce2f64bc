import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { asClient, type Sender, storeSender } from './client.ts';
import { Host } from './host.ts';
import { Network } from './network.ts';
import { Random } from './random.ts';
import { Scheduler } from './scheduler.ts';
import { Store } from './store.ts';
import { newTables, tableNames } from './table.ts';
import { Trace } from './trace.ts';

/**
 * The simulated store alone, for code that knows nothing of virtual time: no faults, indexes that don't lag, pages as
 * large as real ones. Time goes on whenever somebody waits for an answer.
 */
export function loneStore(seed: number): { dynamodb: DynamoDBClient; tables: typeof tableNames } {
  const random = new Random(seed);
  const scheduler = new Scheduler(random.fork(), new Trace(false));
  const store = new Store({
    tables: newTables(),
    nowMs: () => scheduler.nowMs,
    lagMs: () => 0,
    pageRows: () => Infinity,
    batchShare: (entries) => entries,
    onWrite: () => undefined,
  });
  const send = storeSender({
    scheduler,
    random: random.fork(),
    network: new Network(scheduler, random.fork(), new Map(), 'store'),
    store,
    host: new Host(scheduler, random.fork(), 'test', 0),
    timeoutMs: 3000,
    onPrepare: () => undefined,
    onSend: () => undefined,
  });
  return { dynamodb: asClient(driven(send, scheduler)), tables: tableNames };
}

/** Lets time go on as long as anything is unanswered. */
function driven(send: Sender, scheduler: Scheduler): Sender {
  let unanswered = 0;
  let going = Promise.resolve();
  const drive = async () => {
    while (unanswered > 0) await scheduler.run(() => false);
  };
  return async (command, options) => {
    unanswered++;
    const answer = send(command, options).finally(() => unanswered--);
    // One at a time: whoever comes while it runs is mostly served by it, and the next drive finds nothing to do.
    going = going.then(drive);
    // What stops it is a mistake of the simulation, and its answer never comes.
    return Promise.race([answer, going.then(() => answer)]);
  };
}
