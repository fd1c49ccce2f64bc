/**
 * SQS in memory, by its requests: batches of ten, long polls, a visibility timeout. In the order of sending, which SQS doesn't
 * promise; nothing here depends on it.
 */
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
} from '@aws-sdk/client-sqs';
import type { Host, Time } from './time.ts';

type Held = { id: number; body: string; visibleMs: number };
type Poll = { most: number; answer: (messages: Message[]) => void; over: boolean; host: Host };

/** Of deploy/queue.yml. */
const visibilityMs = 30_000;
const lookEveryMs = 250;

export class QueueService {
  readonly #time: Time;
  readonly #held = new Map<number, Held>();
  /** In order, from `#first` on; some may be hidden or gone by now. */
  #visible: Held[] = [];
  #first = 0;
  #polls: Poll[] = [];
  #ids = 0;
  /** Newest last. */
  readonly #depths: { atMs: number; depth: number }[] = [];

  /** How many messages were ever sent. */
  get sent(): number {
    return this.#ids;
  }

  /** @param depthLagMs how old the number of waiting messages is that it tells. SQS says: a minute, or more */
  constructor(time: Time, depthLagMs: number) {
    this.#time = time;
    const look = () => {
      this.#depths.push({ atMs: time.nowMs, depth: this.#waiting() });
      while ((this.#depths[1]?.atMs ?? Number.POSITIVE_INFINITY) <= time.nowMs - depthLagMs) this.#depths.shift();
      time.after(lookEveryMs, look);
    };
    if (depthLagMs > 0) look();
  }

  /** As SQS would tell it. */
  get depth(): number {
    return this.#depths[0]?.depth ?? this.#waiting();
  }

  #waiting(): number {
    let waiting = 0;
    for (const { visibleMs } of this.#held.values()) if (visibleMs <= this.#time.nowMs) waiting++;
    return waiting;
  }

  /** @returns the answer, at once or, to a long poll, when there is one */
  execute(command: { readonly input: object }, host: Host): object | Promise<object> {
    if (command instanceof SendMessageBatchCommand) return this.#send(command.input);
    if (command instanceof ReceiveMessageCommand) return this.#receive(command.input, host);
    if (command instanceof DeleteMessageBatchCommand) return this.#delete(command.input);
    if (command instanceof ChangeMessageVisibilityBatchCommand) return this.#giveBack(command.input);
    if (command instanceof GetQueueAttributesCommand) {
      return { Attributes: { ApproximateNumberOfMessages: String(this.depth) } };
    }
    throw new Error(`this queue knows no ${command.constructor.name}`);
  }

  #send(input: SendMessageBatchCommand['input']): object {
    for (const { MessageBody = '' } of input.Entries ?? []) {
      const held = { id: this.#ids++, body: MessageBody, visibleMs: this.#time.nowMs };
      this.#held.set(held.id, held);
      this.#visible.push(held);
    }
    this.#serve();
    return {};
  }

  #receive(input: ReceiveMessageCommand['input'], host: Host): Promise<object> {
    return new Promise((resolve) => {
      const poll: Poll = {
        most: input.MaxNumberOfMessages ?? 1,
        host,
        over: false,
        answer: (Messages) => {
          poll.over = true;
          resolve({ Messages });
        },
      };
      this.#polls.push(poll);
      this.#time.after((input.WaitTimeSeconds ?? 0) * 1000, () => {
        if (!poll.over) poll.answer([]);
      });
      this.#serve();
    });
  }

  #delete(input: DeleteMessageBatchCommand['input']): object {
    for (const { ReceiptHandle } of input.Entries ?? []) this.#held.delete(Number(ReceiptHandle));
    return {};
  }

  #giveBack(input: ChangeMessageVisibilityBatchCommand['input']): object {
    for (const { ReceiptHandle, VisibilityTimeout = 0 } of input.Entries ?? []) {
      const held = this.#held.get(Number(ReceiptHandle));
      if (held) this.#hide(held, VisibilityTimeout * 1000);
    }
    return {};
  }

  #hide(held: Held, forMs: number): void {
    const visibleMs = this.#time.nowMs + forMs;
    held.visibleMs = visibleMs;
    this.#time.after(forMs, () => {
      if (!this.#held.has(held.id) || held.visibleMs !== visibleMs) return;
      this.#visible.push(held);
      this.#serve();
    });
  }

  #serve(): void {
    while (this.#polls.length > 0) {
      const poll = this.#polls[0];
      // SQS closes the poll of a process that is gone.
      if (!poll || poll.over || !poll.host.alive) {
        this.#polls.shift();
        continue;
      }
      const taken = this.#take(poll.most);
      if (taken.length === 0) return;
      this.#polls.shift();
      for (const held of taken) this.#hide(held, visibilityMs);
      poll.answer(taken.map(({ id, body }) => ({ Body: body, ReceiptHandle: String(id) })));
    }
  }

  #take(most: number): Held[] {
    const taken: Held[] = [];
    while (taken.length < most && this.#first < this.#visible.length) {
      const held = this.#visible[this.#first++];
      if (held && this.#held.has(held.id) && held.visibleMs <= this.#time.nowMs) taken.push(held);
    }
    if (this.#first === this.#visible.length) {
      this.#visible = [];
      this.#first = 0;
    }
    return taken;
  }
}
