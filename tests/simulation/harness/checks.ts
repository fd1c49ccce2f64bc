import { BatchWriteItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { isLater } from '../../../shared/sequence.ts';
import type { Item } from '../../../shared/tables/item.ts';
import type { Sent } from './client.ts';
import type { Host } from './host.ts';
import { kindOf } from './kinds.ts';
import type { Scheduler } from './scheduler.ts';
import type { SimulatedSource } from './source.ts';
import type { Written } from './store.ts';
import { tableNames } from './table.ts';

/** The numbers are those of the invariants in design.md. */
export type Violation = { invariant: 1 | 2 | 3 | 4 | 5 | 6; what: string; atMs: number };

type Options = {
  scheduler: Scheduler;
  sources: Map<string, SimulatedSource>;
  /** The true item, as it is now. */
  item: (table: string, key: string) => Item | undefined;
  /** How long a worker may go on without knowing that somebody deleted the item, while it can read. */
  blindMs: number;
  /** No request is applied later than this after it was sent. */
  latestWriteMs: number;
  /** The process that took this worker id. */
  hostOf: (workerId: string) => Host | undefined;
};

/** Who owned an item when somebody deleted it. Nobody tells him: he finds out when he next reads what he owns. */
type Unaware = { pk: string; owner: string; epoch: string | undefined; sinceMs: number };

/** What has been stored of one connection, by the source's own count. */
type Kept = { stored: Set<number>; completeUpTo: number; keyOfFrame: Map<string, string> };

/**
 * Looks at everything from the outside: the true state of the store, the true sockets, and what each worker sends at the
 * moment at which it sends it. It knows nothing of what the code believes.
 */
export class Checks {
  violation: Violation | undefined;
  messages = 0;
  /** Connections whose source has really said no for good. */
  readonly refusedForGood = new Set<string>();
  readonly #unaware: Unaware[] = [];
  /** When a host's last read was slow, unanswered or failed. */
  readonly #unreadMs = new Map<Host, number>();
  readonly #options: Options;
  readonly #highestEpoch = new Map<string, number>();
  readonly #kept = new Map<string, Kept>();
  readonly #dialled = new Set<string>();

  constructor(options: Options) {
    this.#options = options;
  }

  violate(invariant: Violation['invariant'], what: string): void {
    const { scheduler } = this.#options;
    scheduler.note('VIOLATION', () => `${invariant}: ${what}`);
    this.violation ??= { invariant, what, atMs: scheduler.nowMs };
  }

  /** All messages before this one, by the source's count, are stored. */
  completeUpTo(pk: string): number {
    return this.#keptOf(pk).completeUpTo;
  }

  /** A request leaves a host. */
  sent({ host, command }: Sent): void {
    if (command instanceof BatchWriteItemCommand) {
      for (const { PutRequest } of command.input.RequestItems?.[tableNames.messages] ?? []) {
        if (PutRequest?.Item) this.#owns(host, 'stores a message', PutRequest.Item['worker_id']?.S, PutRequest.Item);
      }
    }
    // A release is sent again until it is answered; by then the connection may be somebody else's, and it is refused.
    const kind = kindOf(command);
    if (command instanceof UpdateItemCommand && (kind === 'renew' || kind === 'status')) {
      const { Key, ExpressionAttributeValues: values = {} } = command.input;
      const what = kind === 'renew' ? 'renews a lease' : 'writes a status';
      this.#owns(host, what, values[':owner']?.S, {
        pk: Key?.['pk'],
        lease_epoch: values[':epoch'],
      } as Item);
    }
  }

  /** A host couldn't read, or had to wait for it. */
  unread(host: Host): void {
    this.#unreadMs.set(host, this.#options.scheduler.nowMs);
  }

  /** A host dials. @param isItself whether a worker id is its own */
  dialled(pk: string, host: Host, isItself: (workerId: string) => boolean, lastSeq: string | null): void {
    const item = this.#options.item(tableNames.connections, pk);
    const owner = item?.['lease_owner']?.S;
    if (!item || owner === undefined || !isItself(owner)) {
      const unaware = this.#unaware.some((one) => one.pk === pk && isItself(one.owner) && this.#mayNotKnow(one, host));
      if (!unaware) this.violate(1, `${host.name}, which doesn't own ${pk}, dials it`);
      return;
    }
    const dial = `${pk} ${item['lease_epoch']?.N}`;
    const first = !this.#dialled.has(dial);
    this.#dialled.add(dial);
    if (first) this.#passes(pk, lastSeq ?? '0', 'the first dial of an epoch');
  }

  written({ table, key, before, after }: Written): void {
    if (table === tableNames.messages && after) this.#storedMessage(key, before, after);
    if (table === tableNames.workers && before?.['expired_at_ms']) {
      const [was, is] = [before, after].map((row) => Number(row?.['lease_expires_at_ms']?.N ?? 0));
      if ((is ?? 0) > (was ?? 0)) this.violate(2, `${key} is dead, and renews its lease`);
    }
    if (table !== tableNames.connections) return;
    if (after) this.#changedConnection(key, before, after);
    else if (before?.['lease_owner']?.S !== undefined) {
      const [owner, epoch] = [before['lease_owner'].S, before['lease_epoch']?.N];
      this.#unaware.push({ pk: key, owner, epoch, sinceMs: this.#options.scheduler.nowMs });
    }
  }

  #changedConnection(pk: string, before: Item | undefined, after: Item): void {
    const epoch = Number(after['lease_epoch']?.N ?? 0);
    const highest = this.#highestEpoch.get(pk) ?? 0;
    const owner = after['lease_owner']?.S;
    const taken =
      owner !== undefined && (owner !== before?.['lease_owner']?.S || epoch !== Number(before?.['lease_epoch']?.N));
    if (epoch < highest) this.violate(2, `the epoch of ${pk} goes back from ${highest} to ${epoch}`);
    if (taken && epoch <= highest) this.violate(2, `${owner} takes ${pk} in epoch ${epoch}, which was used before`);
    if (epoch > highest) this.#highestEpoch.set(pk, epoch);
    const eventBefore = Number(before?.['event_time_ms']?.N ?? 0);
    if (Number(after['event_time_ms']?.N ?? eventBefore) < eventBefore)
      this.violate(3, `an older event is applied to ${pk}`);
    if (after['status']?.S === 'FAILED' && !this.refusedForGood.has(pk))
      this.violate(3, `${pk} has failed, but its source never said so`);
    const position = after['last_seq']?.S;
    if (position === undefined || position === before?.['last_seq']?.S) return;
    const earlier = before?.['last_seq']?.S;
    if (isLater(position, earlier)) this.#passes(pk, position, 'the position in the item');
  }

  #passes(pk: string, lastSeq: string, what: string): void {
    const source = this.#options.sources.get(pk);
    if (!source?.shape.numbered) return;
    const passed = source.indexAfter(Number(lastSeq));
    const complete = this.completeUpTo(pk);
    if (passed > complete) {
      this.violate(4, `${what} of ${pk} passes message ${source.frame(complete).seq}, which isn't stored (${lastSeq})`);
    }
  }

  #storedMessage(key: string, before: Item | undefined, after: Item): void {
    const pk = after['pk']?.S ?? '';
    const text = after['message_data']?.S ?? '';
    if (before && before['message_data']?.S !== text) {
      return this.violate(2, `${key.replace('\n', '/')}: ${before['message_data']?.S} becomes ${text}`);
    }
    if (before) return;
    this.messages++;
    const kept = this.#keptOf(pk);
    const elsewhere = kept.keyOfFrame.get(text);
    if (elsewhere !== undefined && !this.#hadTwo(pk))
      this.violate(1, `${text} is stored twice: ${elsewhere} and ${after['sk']?.S}`);
    kept.keyOfFrame.set(text, after['sk']?.S ?? '');
    const source = this.#options.sources.get(pk);
    if (!source?.shape.numbered) return;
    kept.stored.add(source.indexAfter(Number(JSON.parse(text).seq)) - 1);
    while (kept.stored.has(kept.completeUpTo)) kept.stored.delete(kept.completeUpTo++);
  }

  /** At this moment, by the true table, the connection belongs to this worker in this epoch. */
  #owns(host: Host, what: string, owner: string | undefined, { pk, lease_epoch: epoch }: Item): void {
    const key = pk?.S ?? '';
    const item = this.#options.item(tableNames.connections, key);
    const worker = this.#options.item(tableNames.workers, owner ?? '');
    if (worker?.['expired_at_ms']) this.violate(1, `${owner}, which is dead, ${what} for ${key}`);
    if (item?.['lease_owner']?.S === owner && item?.['lease_epoch']?.N === epoch?.N) return;
    const isUnaware = (one: Unaware) => one.pk === key && one.owner === owner && one.epoch === epoch?.N;
    if (this.#unaware.some((one) => isUnaware(one) && this.#mayNotKnow(one, host))) return;
    const now = item && `${item['lease_owner']?.S ?? 'nobody'} in epoch ${item['lease_epoch']?.N}`;
    this.violate(
      1,
      `${owner} (${host.name}) in epoch ${epoch?.N} ${what} for ${key}, which belongs to ${now ?? 'nobody: there is no item'}`,
    );
  }

  /** @param laterMs so much later than it may act without knowing */
  #mayNotKnow({ sinceMs }: Unaware, host: Host, laterMs = 0): boolean {
    const couldReadMs = Math.max(sinceMs, host.thawedMs, this.#unreadMs.get(host) ?? 0);
    return this.#options.scheduler.nowMs < couldReadMs + this.#options.blindMs + laterMs;
  }

  /** Whether two workers may have stored what they received of it, and a write of one of them may just have arrived. */
  #hadTwo(key: string): boolean {
    const { hostOf, latestWriteMs } = this.#options;
    return this.#unaware.some((one) => {
      const host = one.pk === key ? hostOf(one.owner) : undefined;
      return host !== undefined && this.#mayNotKnow(one, host, latestWriteMs);
    });
  }

  #keptOf(pk: string): Kept {
    let kept = this.#kept.get(pk);
    if (!kept) {
      kept = { stored: new Set(), completeUpTo: 0, keyOfFrame: new Map() };
      this.#kept.set(pk, kept);
    }
    return kept;
  }
}
