import {
  type AttributeValue,
  BatchWriteItemCommand,
  QueryCommand,
  type QueryCommandOutput,
  ScanCommand,
  type ScanCommandOutput,
} from '@aws-sdk/client-dynamodb';
import { isRefused } from '../../shared/errors.ts';
import { laterOf } from '../../shared/sequence.ts';
import { type Entry, Lane } from '../../worker/lane.ts';
import { Lease, type Loss } from '../../worker/lease.ts';
import { Term, type Writing } from '../../worker/term.ts';
import { Tombstones } from '../../worker/tombstones.ts';
import { both, forgiving, replaced, rewriting, without } from './harness/rewrite.ts';
import { tableNames } from './harness/table.ts';
import type { Variant } from './harness/variant.ts';
import type { World } from './harness/world.ts';

const forward = ' AND lease_expires_at_ms < :lease_expires_at_ms';
const nextEpoch = ', lease_epoch = if_not_exists(lease_epoch, :zero) + :one';
const isRelease = (update: string) => /REMOVE[^A-Z]*lease_owner/.test(update);
const isWorkerRenewal = (condition: string) => condition.startsWith('attribute_exists(worker_id)');

/** Each is wrong in one way, and the simulation must find out. */
export const variants: Variant[] = [
  {
    name: 'no-epoch',
    flaw: 'renewals, releases and statuses name the owner only: a late one of an earlier epoch hits the present one',
    sender: without(' AND lease_epoch = :epoch'),
  },
  {
    name: 'epoch-not-raised',
    flaw: 'an acquisition leaves the epoch as it is',
    sender: rewriting(({ UpdateExpression: update, ConditionExpression: condition }) =>
      condition.includes(':now') ? { UpdateExpression: update.replace(nextEpoch, '') } : undefined,
    ),
  },
  {
    name: 'adopted-epoch-kept',
    flaw: 'what the table says is ours is held on in the same epoch: a late release of the first attempt frees it',
    sender: rewriting(({ UpdateExpression: update, ConditionExpression: condition }) =>
      condition.includes(':epoch') && update.includes(nextEpoch)
        ? { UpdateExpression: update.replace(nextEpoch, '') }
        : undefined,
    ),
  },
  {
    name: 'acquired-while-leased',
    flaw: 'an acquisition does not ask whether a lease runs',
    sender: without(' AND (attribute_not_exists(lease_expires_at_ms) OR lease_expires_at_ms <= :now)'),
    workerLease: false,
  },
  {
    name: 'lease-from-answer',
    flaw: 'a lease counts from when its renewal was answered, and not from before it was sent',
    ...countedFromAnswer(),
  },
  {
    name: 'renewal-goes-back',
    flaw: 'a renewal that was delayed on its way pulls the expiry back',
    sender: without(forward),
  },
  {
    name: 'unanswered-is-renewed',
    flaw: 'a renewal that was not answered counts as confirmed',
    sender: forgiving((fault, { UpdateExpression: update, ConditionExpression: condition }) => {
      const renews = update.includes('lease_expires_at_ms') && condition.includes(forward.trim());
      return renews && !isRefused(fault);
    }),
  },
  {
    name: 'no-skew-margin',
    flaw: 'nobody allows for clocks that differ',
    sender: overdueEarlier(1000),
    patch: () => longer(() => 1000),
  },
  {
    name: 'only-timers-tell',
    flaw: 'whether the lease is over is not asked before reading and writing: after a freeze, sockets come before timers',
    patch: () => replaced(Lease.prototype, 'valid', () => ({ value: lostOnlyWhenTold })),
  },
  {
    name: 'never-notices',
    flaw: 'as in the published code: no clock ends a lease, and a refused renewal says nothing',
    sender: forgiving(
      (fault, { ConditionExpression: condition }) => isRefused(fault) && condition.includes(forward.trim()),
    ),
    patch: () => replaced(Term.prototype, 'remainingMs', () => ({ get: () => 10_000 })),
  },
  {
    name: 'emits-after-release',
    flaw: 'the release does not wait for what was read, and the lane stays open after it',
    patch: () => {
      const undo = [
        replaced(Lane.prototype, 'flush', () => ({ value: () => Promise.resolve() })),
        replaced(Lane.prototype, 'close', () => ({ value: () => undefined })),
      ];
      return () => undo.forEach((one) => one());
    },
  },
  {
    name: 'position-passes-holes',
    flaw: 'the position is the newest number that is stored, whatever is missing before it',
    patch: () =>
      replaced(Lane.prototype, 'stored', ({ value: stored }) => ({
        value(this: Lane, entry: Entry) {
          stored.call(this, entry);
          this.position = laterOf(entry.seq, this.position);
        },
      })),
  },
  {
    name: 'resumes-after-newest',
    flaw: 'whoever takes over resumes after the newest message that is stored, whatever is missing before it',
    sender: (send) => async (command, options) => {
      const answer = await send(command, options);
      if (!(command instanceof QueryCommand) || command.input.TableName !== tableNames.messages) return answer;
      const [newest] = (answer as QueryCommandOutput).Items ?? [];
      if (!newest) return answer;
      const { prev_sk: _, ...unlinked } = newest;
      return { Items: [unlinked] };
    },
  },
  {
    name: 'writes-sent-again',
    flaw: 'the client sends an unanswered write again by itself, without asking whether it may still be done',
    sender: (send) => async (command, options) => {
      try {
        return await send(command, options);
      } catch (fault) {
        if (!(fault instanceof Error) || (fault.name !== 'TimeoutError' && fault.message !== 'socket hang up'))
          throw fault;
        return send(command, options);
      }
    },
  },
  {
    name: 'start-overwrites-lease',
    flaw: 'as in the published code: START writes a whole item, and with it a free lease',
    sender: rewriting(({ UpdateExpression: update, ExpressionAttributeNames, ExpressionAttributeValues }) =>
      update.includes('#desired_state =') && !update.includes('#lease_expires_at_ms')
        ? {
            UpdateExpression: `${update.replace('SET ', 'SET lease_expires_at_ms = :none, ')}`,
            ExpressionAttributeNames,
            ExpressionAttributeValues: { ...ExpressionAttributeValues, ':none': { N: '0' } },
          }
        : undefined,
    ),
  },
  {
    name: 'keys-without-epoch',
    flaw: 'messages that nobody numbers are keyed by a counter alone, which each owner begins anew',
    sender: (send) => (command, options) => {
      if (!(command instanceof BatchWriteItemCommand)) return send(command, options);
      const RequestItems = Object.fromEntries(
        Object.entries(command.input.RequestItems ?? {}).map(([table, requests]) => [
          table,
          requests.map(({ PutRequest }) => {
            const Item = { ...PutRequest?.Item };
            if (Item['sk']?.S) Item['sk'] = { S: Item['sk'].S.replace(/^\d{12}#/, '') };
            return { PutRequest: { Item } };
          }),
        ]),
      );
      return send(new BatchWriteItemCommand({ RequestItems }), options);
    },
  },
  {
    name: 'deletion-ignored',
    flaw: 'a worker that finds the item of what it holds deleted goes on as long as its lease runs',
    patch: () =>
      replaced(Lease.prototype, 'lose', ({ value: lose }) => ({
        value(this: Lease, loss: Loss) {
          if (loss !== 'gone') lose.call(this, loss);
        },
      })),
    workerLease: true,
  },
  {
    name: 'asked-too-early',
    flaw: 'whether messages may be written is asked before their request is made, and not when it is ready to go',
    sender: (send) => (command, options) =>
      send(command instanceof BatchWriteItemCommand ? new BatchWriteItemCommand(command.input) : command, options),
  },
  {
    name: 'release-unconditional',
    flaw: 'a release is written whoever owns the connection by then',
    sender: rewriting(({ UpdateExpression: update }) =>
      isRelease(update) ? { ConditionExpression: 'attribute_exists(pk)' } : undefined,
    ),
  },
  {
    name: 'takeover-without-tombstone',
    flaw: 'whoever is said to be dead is believed to be',
    patch: () => replaced(Tombstones.prototype, 'isDead', () => ({ value: () => Promise.resolve(true) })),
    workerLease: true,
  },
  {
    name: 'expired-unchecked',
    flaw: 'the reconciler puts tombstones by a list that it has read before, and does not look again',
    sender: both(oldList(), without(' AND lease_expires_at_ms < :overdue')),
    workerLease: true,
  },
  {
    name: 'renewal-after-tombstone',
    flaw: 'a worker that was declared dead may renew',
    sender: rewriting(({ ConditionExpression: condition }) =>
      isWorkerRenewal(condition) ? { ConditionExpression: `attribute_exists(worker_id)${forward}` } : undefined,
    ),
    workerLease: true,
  },
  {
    name: 'id-kept-after-fence',
    flaw: 'a worker that lost its lease goes on under the same id',
    newId: (_fresh, { host }) => `w-${host.name}`,
    sender: rewriting(({ ConditionExpression: condition }, { host }) => {
      if (!host.name.startsWith('worker')) return undefined;
      // Its own tombstone is left away, and so is what one would stop.
      if (condition === 'attribute_not_exists(expired_at_ms)')
        return { UpdateExpression: 'REMOVE nothing', ConditionExpression: 'attribute_exists(worker_id)' };
      return condition.startsWith('attribute_not_exists(worker_id)')
        ? { ConditionExpression: 'attribute_not_exists(nothing)' }
        : undefined;
    }),
    workerLease: true,
  },
  {
    name: 'followed-once',
    flaw: 'what a dead worker owns is looked for only when it is declared dead: a claim of it that lands later stays its own',
    sender:
      (send, { world, host }) =>
      async (command, options) => {
        const answer = await send(command, options);
        if (host.name.startsWith('worker') || !(command instanceof QueryCommand)) return answer;
        const owner = command.input.ExpressionAttributeValues?.[':owner']?.S;
        const expiredAtMs = Number(
          world.tables[tableNames.workers]?.get(owner ?? '')?.['expired_at_ms']?.N ?? Infinity,
        );
        return world.nowMs() - expiredAtMs > 8000 ? { Items: [] } : answer;
      },
    workerLease: true,
  },
];

export function variantNamed(name: string): Variant {
  const variant = variants.find((one) => one.name === name);
  if (!variant) throw new Error(`no variant ${name}; there are: ${variants.map((one) => one.name).join(', ')}`);
  return variant;
}

function lostOnlyWhenTold(this: Lease): boolean {
  return this.loss === undefined;
}

function countedFromAnswer(): Partial<Variant> {
  let world: World | undefined;
  const sentMs = new WeakMap<Writing, number>();
  const tookMs = new WeakMap<Term, number>();
  return {
    sender: (send, place) => {
      ({ world } = place);
      return send;
    },
    patch: () => {
      const undo = [
        longer((term) => tookMs.get(term) ?? 0),
        replaced(Term.prototype, 'next', ({ value: next }) => ({
          value(this: Term) {
            const writing: Writing = next.call(this);
            sentMs.set(writing, world?.scheduler.nowMs ?? 0);
            return writing;
          },
        })),
        replaced(Term.prototype, 'extend', ({ value: extend }) => ({
          value(this: Term, writing: Writing) {
            tookMs.set(this, (world?.scheduler.nowMs ?? 0) - (sentMs.get(writing) ?? 0));
            extend.call(this, writing);
          },
        })),
      ];
      return () => undo.forEach((one) => one());
    },
  };
}

/** A worker counts on each lease this much longer. */
function longer(byMs: (term: Term) => number): () => void {
  return replaced(Term.prototype, 'remainingMs', (original) => ({
    get(this: Term) {
      return original.get?.call(this) + byMs(this);
    },
  }));
}

/** The reconciler declares a worker dead this much earlier. */
function overdueEarlier(byMs: number): NonNullable<Variant['sender']> {
  const write = rewriting(({ ExpressionAttributeValues: values }) => {
    const overdue = values?.[':overdue'];
    return overdue ? { ExpressionAttributeValues: { ...values, ':overdue': later(overdue, byMs) } } : undefined;
  });
  const read: NonNullable<Variant['sender']> = (send) => async (command, options) => {
    const answer = await send(command, options);
    if (!(command instanceof ScanCommand)) return answer;
    const { Items = [], ...rest } = answer as ScanCommandOutput;
    return {
      ...rest,
      Items: Items.map((row) => ({ ...row, lease_expires_at_ms: later(row['lease_expires_at_ms'], -byMs) })),
    };
  };
  return both(read, write);
}

function later({ N = '0' }: AttributeValue = { N: '0' }, byMs: number): AttributeValue {
  return { N: String(Number(N) + byMs) };
}

/** The reconciler sees the workers as they were half a minute ago. */
function oldList(): NonNullable<Variant['sender']> {
  return (send, { world }) => {
    const seen: { atMs: number; answer: object }[] = [];
    return async (command, options) => {
      const answer = await send(command, options);
      if (!(command instanceof ScanCommand)) return answer;
      const { nowMs } = world.scheduler;
      seen.push({ atMs: nowMs, answer });
      return seen.findLast(({ atMs }) => atMs <= nowMs - 25_000)?.answer ?? answer;
    };
  };
}
