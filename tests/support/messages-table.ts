/** A messages table whose every answer a test decides. Nothing else could lose, delay or reorder them at will. */
import type { Seq, StoredKey } from '../../shared/sequence.ts';
import type { Message, MessagesTable } from '../../shared/tables/messages.ts';

/** What a query page holds at most, whatever it projects. */
const pageBytes = 1_000_000;

export type StoreCall = {
  readonly messages: Message[];
  /** All stored but `left`, and the worker is told so. */
  answer(left?: Message[]): void;
  /** Nothing is stored, or what `applied` lets through, and the worker isn't told. */
  lose(applied?: (message: Message) => boolean): void;
  /** Nothing is stored. */
  refuse(fault: Error): void;
};

/** As DynamoDB says that a request can never work. */
export function validationFault(): Error {
  const fault = new Error('too large');
  fault.name = 'ValidationException';
  return fault;
}

export class FakeMessages implements MessagesTable {
  /** By `pk|sk`. */
  readonly stored = new Map<string, Message>();
  /** Sent and not answered, oldest first. */
  readonly calls: StoreCall[] = [];
  /** Called when a request is sent. */
  onStore: (messages: Message[]) => void = () => {};

  store(messages: Message[]): Promise<Message[]> {
    this.onStore(messages);
    const { promise, resolve, reject } = Promise.withResolvers<Message[]>();
    const settle = (end: () => void) => () => {
      const index = this.calls.indexOf(call);
      if (index < 0) throw new Error('this request was answered before');
      this.calls.splice(index, 1);
      end();
    };
    const call: StoreCall = {
      messages,
      answer: (left = []) =>
        settle(() => {
          this.#put(messages.filter((message) => !left.includes(message)));
          resolve(left);
        })(),
      lose: (applied = () => false) =>
        settle(() => {
          this.#put(messages.filter(applied));
          reject(new Error('socket hang up'));
        })(),
      refuse: (fault) => settle(() => reject(fault))(),
    };
    this.calls.push(call);
    return promise;
  }

  newestNumbered(
    pk: string,
    _after: Seq | undefined,
    most: number,
  ): Promise<{ keys: StoredKey[]; truncated: boolean }> {
    return Promise.resolve(this.newest(pk, most));
  }

  /** As DynamoDB answers one query: `most` keys or one page, whatever is reached first. */
  newest(pk: string, most: number): { keys: StoredKey[]; truncated: boolean } {
    const rows = [...this.stored.values()].filter((message) => message.pk === pk);
    rows.sort((a, b) => (a.sk < b.sk ? 1 : -1));
    const page: Message[] = [];
    let bytes = 0;
    for (const row of rows) {
      bytes += Buffer.byteLength(row.data) + 300;
      if (page.length === most || bytes > pageBytes) break;
      page.push(row);
    }
    const keys = page.reverse().map(({ sk, prev, part, parts }) => ({ sk, prev, more: part < parts - 1 }));
    return { keys, truncated: page.length < rows.length };
  }

  #put(messages: Message[]): void {
    for (const message of messages) this.stored.set(`${message.pk}|${message.sk}`, message);
  }
}
