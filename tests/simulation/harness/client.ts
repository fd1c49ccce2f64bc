import { type AttributeValue, BatchWriteItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Item } from '../../../shared/tables/item.ts';
import type { Host } from './host.ts';
import { kindOf } from './kinds.ts';
import type { Network, Plan } from './network.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';
import type { Command, Store } from './store.ts';

export type Sent = { host: Host; command: Command; atMs: number };

type SendOptions = { abortSignal?: AbortSignal; requestTimeout?: number };

/** Something that sends commands; the SDK's client is one, and a broken variant may put another in between. */
export type Sender = (command: Command, options?: SendOptions) => Promise<object>;

export type ClientParts = {
  scheduler: Scheduler;
  random: Random;
  network: Network;
  store: Store;
  host: Host;
  timeoutMs: number;
  /** What comes just before `onSend`, for a request that asks once more when it is ready to go. */
  onPrepare: (sent: Sent) => void;
  onSend: (sent: Sent) => void;
};

/** One host's client of the simulated DynamoDB: what it sends is applied later, or never, and so is the answer. */
export function storeSender(parts: ClientParts): Sender {
  const transmit = transmitter(parts);
  return (command, options) => {
    if (!(command instanceof BatchWriteItemCommand)) return transmit(command, options);
    return prepared(parts, command, () => transmit(command, options));
  };
}

/** Making and signing a request takes turns, in any of which the process may be stopped; then its own middleware is asked. */
async function prepared(
  { scheduler, host, onPrepare }: ClientParts,
  command: BatchWriteItemCommand,
  transmit: () => Promise<object>,
): Promise<object> {
  onPrepare({ host, command, atMs: scheduler.nowMs });
  await new Promise<void>((ready) => host.deliver(scheduler.nowMs, ready));
  const output = async () => ({ response: undefined, output: await transmit() });
  const handle = command.middlewareStack.resolve(output as never, {});
  return (await handle({ input: command.input })).output;
}

function transmitter(parts: ClientParts): Sender {
  const { scheduler, random, network, host, timeoutMs, onSend } = parts;

  return (command, options = {}) => {
    // Its last microtasks may still run; nothing leaves it.
    if (host.state === 'dead') return new Promise(() => undefined);
    onSend({ host, command, atMs: scheduler.nowMs });
    scheduler.note('store.sent', () => `${host.name} ${summary(command)}`);
    const { abortSignal } = options;
    if (abortSignal?.aborted) return Promise.reject(named('AbortError', 'Request aborted'));
    const plan = network.plan(host, timeoutMs, kindOf(command));
    return new Promise((resolve, reject) => {
      const deadlineMs = scheduler.nowMs + timeoutMs;
      let settled = false;
      const settle = (finish: () => void) => {
        if (settled) return;
        settled = true;
        abortSignal?.removeEventListener('abort', aborted);
        finish();
      };
      const aborted = () => settle(() => reject(named('AbortError', 'Request aborted')));
      abortSignal?.addEventListener('abort', aborted);
      const timedOut = () => {
        scheduler.note('store.unanswered', () => `${host.name} ${summary(command)}`);
        settle(() => reject(named('TimeoutError', `no answer within ${timeoutMs} ms`)));
      };
      const answerAtMs = plan.answerMs === undefined ? Infinity : scheduler.nowMs + plan.answerMs;
      if (answerAtMs >= deadlineMs) scheduler.at(deadlineMs, timedOut, host, 'timer');
      const answer = (finish: () => void) => {
        if (answerAtMs === Infinity) return;
        host.deliver(answerAtMs, () => {
          // Only a frozen host gets an answer so late: then chance says whether its timer was seen before.
          if (scheduler.nowMs > deadlineMs && random.chance(0.5)) timedOut();
          else settle(finish);
        });
      };
      carryOut(parts, command, plan, (outcome) =>
        answer(() => (outcome.ok ? resolve(outcome.answer) : reject(outcome.fault))),
      );
    });
  };
}

type Outcome = { ok: true; answer: object } | { ok: false; fault: Error };

/** Lets the store do what was asked, when it is time. @param done told of the outcome, if the caller may ever learn it */
function carryOut(
  { scheduler, store, random }: ClientParts,
  command: Command,
  plan: Plan,
  done: (outcome: Outcome) => void,
): void {
  if (plan.fate === 'throttled') {
    const name = random.pick(['ProvisionedThroughputExceededException', 'ThrottlingException', 'InternalServerError']);
    return done({ ok: false, fault: named(name, 'try again') });
  }
  if (plan.fate === 'reset')
    done({ ok: false, fault: Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }) });
  if (plan.applyMs === undefined) return;
  const answered = plan.fate === 'ok' || plan.fate === 'slow';
  const commands = answered ? [command] : torn(command, random);
  for (const [index, part] of commands.entries()) {
    scheduler.after(index === 0 ? plan.applyMs : random.int(1, plan.applyMs), () => {
      const outcome = attempt(store, part);
      scheduler.note('store.applied', () => `${summary(part)}${outcome.ok ? '' : ` ${outcome.fault.name}`}`);
      if (answered) done(outcome);
    });
  }
}

/** A batch is no transaction: when it doesn't go well, each part of it is done at its own time, or not at all. */
function torn(command: Command, random: Random): Command[] {
  if (!(command instanceof BatchWriteItemCommand)) return [command];
  const parts = Object.entries(command.input.RequestItems ?? {}).flatMap(([table, requests]) =>
    requests.map((request) => new BatchWriteItemCommand({ RequestItems: { [table]: [request] } })),
  );
  return random.shuffle(parts.filter(() => random.chance(0.7)));
}

function attempt(store: Store, command: Command): Outcome {
  try {
    return { ok: true, answer: store.execute(command) };
  } catch (fault) {
    // What DynamoDB answers has a name; anything else is a mistake of the simulation.
    if (!(fault instanceof Error) || fault.name === 'Error') throw fault;
    return { ok: false, fault };
  }
}

function named(name: string, message: string): Error {
  return Object.assign(new Error(message), { name });
}

/** One line for the trace: which item, and the values that decide. */
export function summary(command: Command): string {
  const input = command.input as {
    Key?: Item;
    RequestItems?: Record<string, { PutRequest?: { Item?: Item } }[] | { Keys?: Item[] }>;
    ExpressionAttributeValues?: Item;
    IndexName?: string;
  };
  const name = command.constructor.name.replace('Command', '');
  const key = Object.values(input.Key ?? {})
    .map(plain)
    .join(' ');
  const values = Object.entries(input.ExpressionAttributeValues ?? {}).map(
    ([name, value]) => `${name}=${plain(value)}`,
  );
  const entries = Object.values(input.RequestItems ?? {}).flatMap((list) =>
    Array.isArray(list)
      ? list.map(({ PutRequest }) => `${plain(PutRequest?.Item?.['pk'])}/${plain(PutRequest?.Item?.['sk'])}`)
      : (list.Keys ?? []).map((entry) => Object.values(entry).map(plain).join(' ')),
  );
  return [name, input.IndexName ?? '', key, ...values, ...entries].filter((part) => part !== '').join(' ');
}

function plain(value: AttributeValue | undefined): string {
  return value === undefined ? '' : String(Object.values(value)[0]);
}

/** The tables only ever call `send`. */
export function asClient(send: Sender): DynamoDBClient {
  return { send } as unknown as DynamoDBClient;
}
