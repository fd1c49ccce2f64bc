import type { Queue } from '../../../shared/queue.ts';
import { decodeWakeUp, encodeWakeUp } from '../../../shared/wakeup.ts';
import type { Host } from './host.ts';
import type { Network } from './network.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';

type Message = { id: number; body: string; visibleMs: number; receives: number };
type Poll = { most: number; answer: (messages: Message[]) => void; over: boolean };

const visibilityMs = 30_000;
const mostReceives = 10;

export type QueueTrouble = { loss: number; twice: number; slow: number };
export const noTrouble: QueueTrouble = { loss: 0, twice: 0, slow: 0 };

/** SQS: at least once, in no order, hidden while somebody works on it, and put aside when nobody gets done with it. */
export class SimulatedQueue {
  trouble = noTrouble;
  readonly deadLetters: string[] = [];
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #network: Network;
  readonly #longPollMs: number;
  readonly #messages = new Map<number, Message>();
  readonly #polls = new Set<Poll>();
  #ids = 0;

  constructor(scheduler: Scheduler, random: Random, network: Network, longPollMs: number) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#network = network;
    this.#longPollMs = longPollMs;
  }

  /** The queue as the code on this host sees it. */
  from(host: Host, timeoutMs: number): Queue {
    return {
      send: (wakeUp) => this.#ask(host, timeoutMs, () => this.#add(encodeWakeUp(wakeUp))),
      depth: () => this.#ask(host, timeoutMs, () => this.#visible().length),
      receive: async (most) => {
        const messages = await this.#poll(host, Math.min(most, 10), timeoutMs);
        return messages.map(({ id, body, receives }) => ({
          wakeUp: decodeWakeUp(body),
          done: () => this.#ask(host, timeoutMs, () => void this.#messages.delete(id)),
          back: () => this.#ask(host, timeoutMs, () => this.#show(id, receives)),
        }));
      },
    };
  }

  #visible(): Message[] {
    const { nowMs } = this.#scheduler;
    return [...this.#messages.values()].filter(({ visibleMs }) => visibleMs <= nowMs);
  }

  #add(body: string): void {
    if (this.#random.chance(this.trouble.loss)) return this.#scheduler.note('queue.lost', () => body);
    const copies = this.#random.chance(this.trouble.twice) ? 2 : 1;
    for (let copy = 0; copy < copies; copy++) {
      const delayMs = this.#random.chance(this.trouble.slow) ? this.#random.int(0, 20_000) : this.#random.int(0, 30);
      const id = this.#ids++;
      this.#messages.set(id, { id, body, visibleMs: this.#scheduler.nowMs + delayMs, receives: 0 });
      this.#scheduler.after(delayMs, () => this.#serve());
    }
  }

  /** A receipt is good only until somebody else has received the message. */
  #show(id: number, receives: number): void {
    const message = this.#messages.get(id);
    if (!message || message.receives !== receives) return;
    message.visibleMs = this.#scheduler.nowMs;
    this.#serve();
  }

  #serve(): void {
    for (const poll of this.#random.shuffle([...this.#polls])) {
      const messages = this.#take(poll.most);
      if (messages.length === 0) return;
      poll.answer(messages);
    }
  }

  #take(most: number): Message[] {
    const taken = this.#random.shuffle(this.#visible()).slice(0, most);
    for (const message of taken) {
      message.receives++;
      if (message.receives > mostReceives) {
        this.#messages.delete(message.id);
        this.deadLetters.push(message.body);
        continue;
      }
      message.visibleMs = this.#scheduler.nowMs + visibilityMs;
      this.#scheduler.after(visibilityMs, () => this.#serve());
    }
    return taken.filter(({ receives }) => receives <= mostReceives).map((message) => ({ ...message }));
  }

  /** One request and its answer; what it does happens at the queue, whether the answer arrives or not. */
  #ask<T>(host: Host, timeoutMs: number, act: () => T): Promise<T> {
    const scheduler = this.#scheduler;
    const plan = this.#network.plan(host, timeoutMs);
    return new Promise((resolve, reject) => {
      const fail = () => reject(Object.assign(new Error('the queue does not answer'), { name: 'TimeoutError' }));
      const answerMs = plan.answerMs ?? Infinity;
      const fails = answerMs >= timeoutMs || plan.fate === 'reset' || plan.fate === 'throttled';
      if (fails) host.deliver(scheduler.nowMs + Math.min(answerMs, timeoutMs), fail);
      if (plan.applyMs === undefined) return;
      const answerAtMs = scheduler.nowMs + answerMs;
      scheduler.after(plan.applyMs, () => {
        const outcome = act();
        if (!fails) host.deliver(answerAtMs, () => resolve(outcome));
      });
    });
  }

  async #poll(host: Host, most: number, timeoutMs: number): Promise<Message[]> {
    const scheduler = this.#scheduler;
    const plan = this.#network.plan(host, timeoutMs);
    return new Promise((resolve, reject) => {
      const fail = () => reject(Object.assign(new Error('the queue does not answer'), { name: 'TimeoutError' }));
      const lostAnswer = plan.fate !== 'ok' && plan.fate !== 'slow';
      if (lostAnswer) host.deliver(scheduler.nowMs + (plan.answerMs ?? this.#longPollMs + timeoutMs), fail);
      if (plan.applyMs === undefined) return;
      scheduler.after(plan.applyMs, () => {
        const poll: Poll = {
          most,
          over: false,
          answer: (messages) => {
            poll.over = true;
            this.#polls.delete(poll);
            // Taken for somebody who may be gone by now: hidden from all others all the same.
            if (!lostAnswer) host.deliver(scheduler.nowMs + this.#network.latencyMs(), () => resolve(messages));
          },
        };
        this.#polls.add(poll);
        scheduler.after(this.#longPollMs, () => {
          if (!poll.over) poll.answer([]);
        });
        this.#serve();
      });
    });
  }
}
