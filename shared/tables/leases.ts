import { type DynamoDBClient, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { type Connection, type Status, shardKey } from '../connection.ts';
import { isRefused } from '../errors.ts';
import { toConnection, updateOf, values } from './item.ts';

/** What a worker says of itself with each write: this is mine, in this epoch. */
export type Claim = { pk: string; owner: string; epoch: number };

/** The dead worker, and the epoch in which it owned the connection. Only for a worker whose tombstone was read. */
export type Predecessor = { owner: string; epoch: number };

export type StatusChange = {
  status: Status;
  reason?: string | undefined;
  attempts: number;
  openedAtMs?: number | undefined;
};

export type ReleaseWith = {
  lastSeq: string | undefined;
  status: StatusChange;
  /** Unix ms before which nobody shall try again. */
  notBeforeMs?: number | undefined;
  /** The source said no for good to what was wanted in this generation. */
  failedGeneration?: number | undefined;
};

/** The item as it is now, and as it was right before: who had it, and since when nobody does. */
export type Acquired = Connection & { before: Connection };

export type LeasesTable = ReturnType<typeof leasesTable>;

/** Somebody wants it, and the source hasn't said no for good. */
const wanted = 'desired_state = :started AND (attribute_not_exists(#status) OR #status <> :failed)';
/** Nobody has a lease that still runs: never taken, released, run out, or waiting for a next try that is due now. */
const free = '(attribute_not_exists(lease_expires_at_ms) OR lease_expires_at_ms <= :now)';
/** Owned by a worker that is dead, in the very epoch in which it was seen to be. */
const left = '(lease_owner = :dead AND lease_epoch = :dead_epoch)';
const mine = 'lease_owner = :owner AND lease_epoch = :epoch';

/**
 * The lease on a connection: acquire, adopt, renew, release. Each is one conditional write.
 * Three outcomes, never mixed up: applied, refused (both are returned), unanswered (thrown; it may have been applied).
 */
export function leasesTable(db: DynamoDBClient, table: string, options: { shards: number }) {
  async function write(pk: string, condition: string, update: Update, ReturnValues: 'ALL_NEW' | 'ALL_OLD' | 'NONE') {
    try {
      const answer = await db.send(
        new UpdateItemCommand({
          TableName: table,
          Key: { pk: { S: pk } },
          UpdateExpression: update.expression,
          ConditionExpression: condition,
          ExpressionAttributeNames: update.names,
          ExpressionAttributeValues: values(update.values),
          ReturnValues,
        }),
      );
      return answer.Attributes ?? {};
    } catch (fault) {
      if (isRefused(fault)) return 'refused';
      throw fault;
    }
  }

  async function change(pk: string, condition: string, update: Update): Promise<Connection | 'refused'> {
    const after = await write(pk, condition, update, 'ALL_NEW');
    return after === 'refused' ? 'refused' : toConnection(after);
  }

  return {
    /**
     * Takes a connection that is wanted and free, or was left by `dead`, with the next epoch. One write either way.
     * @returns the item as it now is, and as it was
     */
    async acquire(
      pk: string,
      owner: string,
      expiresAtMs: number,
      nowMs: number,
      dead?: Predecessor,
    ): Promise<Acquired | 'refused'> {
      const update = acquisition(owner, expiresAtMs, nowMs);
      const more = { ':now': nowMs, ...(dead ? { ':dead': dead.owner, ':dead_epoch': dead.epoch } : {}) };
      const open = dead ? `(${free} OR ${left})` : free;
      const whole = { ...update, values: { ...update.values, ...more } };
      const seen = await write(pk, `${wanted} AND ${open}`, whole, 'ALL_OLD');
      if (seen === 'refused') return seen;
      const before = toConnection(seen);
      return { ...before, ...acquired(owner, before.leaseEpoch + 1, expiresAtMs, nowMs), before };
    },

    /**
     * Takes what `claim` says is ours already: an earlier acquisition was applied and only its answer was lost. It gets
     * a new epoch all the same, so that whatever of that earlier attempt still arrives finds a newer one.
     */
    adopt(claim: Claim, expiresAtMs: number, nowMs: number): Promise<Connection | 'refused'> {
      const update = acquisition(claim.owner, expiresAtMs, nowMs);
      return change(claim.pk, `${wanted} AND ${mine}`, owned(update, claim));
    },

    /** Moves the expiry forward, never back: a renewal that was delayed on its way lands on a later expiry and is refused. */
    async renew(
      claim: Claim,
      expiresAtMs: number,
      lastSeq: string | undefined,
      nowMs: number,
    ): Promise<'renewed' | 'refused'> {
      const update = updateOf({
        lease_expires_at_ms: expiresAtMs,
        updated_at_ms: nowMs,
        ...(lastSeq === undefined ? {} : { last_seq: lastSeq }),
      });
      const forward = 'lease_expires_at_ms < :lease_expires_at_ms';
      const answer = await write(claim.pk, `${mine} AND ${forward}`, owned(update, claim), 'NONE');
      return answer === 'refused' ? 'refused' : 'renewed';
    },

    /** Written only on change: a status isn't a heartbeat. */
    async setStatus(claim: Claim, status: StatusChange, nowMs: number): Promise<'written' | 'refused'> {
      const update = updateOf({ ...statusOf(status), updated_at_ms: nowMs });
      const answer = await write(claim.pk, mine, owned(update, claim), 'NONE');
      return answer === 'refused' ? 'refused' : 'written';
    },

    /** Gives it back, with the position. @returns the item as it now is, so that the caller sees whether it is wanted again */
    async release(claim: Claim, given: ReleaseWith, nowMs: number): Promise<Connection | 'refused'> {
      const release = {
        lease_owner: undefined,
        lease_expires_at_ms: given.notBeforeMs ?? 0,
        updated_at_ms: nowMs,
        ...statusOf(given.status),
        ...(given.lastSeq === undefined ? {} : { last_seq: given.lastSeq }),
      };
      if (given.failedGeneration === undefined) return change(claim.pk, mine, owned(updateOf(release), claim));
      const failed = { ...release, desired_shard: shardKey('FAILED', claim.pk, options.shards) };
      const update = owned(updateOf(failed), claim);
      return change(claim.pk, `${mine} AND generation = :generation AND desired_state = :started`, {
        ...update,
        values: { ...update.values, ':generation': given.failedGeneration, ':started': 'STARTED' },
      });
    },
  };
}

type Update = ReturnType<typeof updateOf>;

function acquisition(owner: string, expiresAtMs: number, nowMs: number): Update {
  const change = updateOf({
    lease_owner: owner,
    lease_expires_at_ms: expiresAtMs,
    updated_at_ms: nowMs,
    status: 'CONNECTING',
  });
  return {
    expression: `${change.expression}, lease_epoch = if_not_exists(lease_epoch, :zero) + :one`,
    names: change.names,
    values: { ...change.values, ':zero': 0, ':one': 1, ':started': 'STARTED', ':failed': 'FAILED' },
  };
}

/** What `acquisition` makes of the item that it finds. */
function acquired(leaseOwner: string, leaseEpoch: number, leaseExpiresAtMs: number, updatedAtMs: number) {
  return { leaseOwner, leaseEpoch, leaseExpiresAtMs, updatedAtMs, status: 'CONNECTING' } as const;
}

function owned(update: Update, claim: Claim): Update {
  return { ...update, values: { ...update.values, ':owner': claim.owner, ':epoch': claim.epoch } };
}

function statusOf(change: StatusChange) {
  return {
    status: change.status,
    status_reason: change.reason,
    attempts: change.attempts,
    ...(change.openedAtMs === undefined ? {} : { opened_at_ms: change.openedAtMs }),
  };
}
