import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '../../../shared/clock.ts';
import type { LeasesTable } from '../../../shared/tables/leases.ts';
import { adopt, claim } from '../../../worker/claim.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { wishes } from '../../support/wishes.ts';
import { workerOn } from '../../support/worker-on-aws.ts';

let aws: TestAws;
beforeAll(async () => {
  aws = await startAws({ namespace: 'worker-claim' });
});
afterAll(() => aws?.stop());

const worker = () => {
  const made = workerOn(aws);
  return { ...made, ...wishes(made.context) };
};

const hangUp = () => new Error('socket hang up');

/** Leases whose acquisitions are applied, and whose answers get lost. */
const losingAnswers = (leases: LeasesTable): LeasesTable => ({
  ...leases,
  acquire: async (...request) => {
    await leases.acquire(...request);
    throw hangUp();
  },
});

describe('claiming', () => {
  test('takes what is free and wanted, under the next epoch', async () => {
    const { context, start, item } = worker();
    const pk = await start('free');
    const before = await item('free');
    const outcome = await claim(context, pk);
    const after = await item('free');
    if (!outcome.won) throw new Error(`lost: ${outcome.why}`);
    expect(outcome.lease.claim).toEqual({ pk, owner: context.presence.id, epoch: before.leaseEpoch + 1 });
    expect(after).toMatchObject({ leaseOwner: context.presence.id, leaseEpoch: before.leaseEpoch + 1 });
    expect(outcome.lease.valid()).toBe(true);
    outcome.lease.close();
  });

  test('is won by one of many rivals, and the others learn who won', async () => {
    const pk = await worker().start('contested');
    const rivals = Array.from({ length: 8 }, worker);
    const outcomes = await Promise.all(rivals.map(({ context }) => claim(context, pk)));
    const winners = rivals.filter((_, index) => outcomes[index]?.won);
    expect(winners).toHaveLength(1);
    expect(outcomes.filter((outcome) => !outcome.won)).toEqual(
      Array.from({ length: 7 }, () => ({ won: false, why: 'held', owner: winners[0]?.context.presence.id })),
    );
    for (const outcome of outcomes) if (outcome.won) outcome.lease.close();
  });

  test('leaves alone what nobody wants, what has failed, and what isn’t there', async () => {
    const { context, start, stop, item } = worker();
    const stopped = await start('stopped');
    await stop('stopped');
    expect(await claim(context, stopped)).toEqual({ won: false, why: 'unwanted' });

    const failed = await start('failed');
    const mine = { pk: failed, owner: context.presence.id };
    await context.leases.acquire(failed, context.presence.id, Date.now() + 5_000, Date.now());
    const { leaseEpoch: epoch, generation } = await item('failed');
    const status = { status: 'FAILED' as const, reason: 'no', attempts: 1 };
    await context.leases.release({ ...mine, epoch }, { lastSeq: undefined, status, failedGeneration: generation }, 0);
    expect(await claim(context, failed)).toEqual({ won: false, why: 'unwanted' });

    expect(await claim(context, 'CONN#nobody')).toEqual({ won: false, why: 'gone' });
    expect(await context.connections.get('CONN#nobody')).toBeUndefined();
  });

  test('waits for the time of the next try', async () => {
    const { context, start, item } = worker();
    const pk = await start('resting');
    await context.leases.acquire(pk, context.presence.id, Date.now() + 5_000, Date.now());
    const { leaseEpoch: epoch } = await item('resting');
    const status = { status: 'RETRYING' as const, attempts: 10 };
    const given = { lastSeq: undefined, status, notBeforeMs: Date.now() + 60_000 };
    await context.leases.release({ pk, owner: context.presence.id, epoch }, given, Date.now());
    expect(await claim(context, pk)).toEqual({ won: false, why: 'held', owner: undefined });
  });
});

describe('an acquisition whose answer is lost', () => {
  test('was applied: it is adopted under yet another epoch, and the first one can do nothing any more', async () => {
    const { context, start, item, metrics } = worker();
    const pk = await start('lost-answer');
    const before = await item('lost-answer');
    const outcome = await claim({ ...context, leases: losingAnswers(context.leases) }, pk);
    if (!outcome.won) throw new Error(`lost: ${outcome.why}`);
    expect(outcome.lease.claim.epoch).toBe(before.leaseEpoch + 2);
    expect(metrics.of('ClaimsUnanswered')).toBe(1);
    const first = { pk, owner: context.presence.id, epoch: before.leaseEpoch + 1 };
    expect(await context.leases.renew(first, Date.now() + 99_000, undefined, Date.now())).toBe('refused');
    outcome.lease.close();
  });

  test('was not applied, as far as anybody can see: undecided, not lost', async () => {
    const { context, start } = worker();
    const pk = await start('undecided');
    const leases = { ...context.leases, acquire: () => Promise.reject(hangUp()) };
    await expect(claim({ ...context, leases }, pk)).rejects.toThrow('socket hang up');
  });

  test('somebody else has it: lost', async () => {
    const { context, start } = worker();
    const other = worker();
    const pk = await start('somebody-else');
    const leases: LeasesTable = {
      ...context.leases,
      acquire: async () => {
        await other.context.leases.acquire(pk, other.context.presence.id, Date.now() + 5_000, Date.now());
        throw hangUp();
      },
    };
    const outcome = await claim({ ...context, leases }, pk);
    expect(outcome).toEqual({ won: false, why: 'held', owner: other.context.presence.id });
  });

  test('stopped meanwhile: ours by the table, but not to be adopted', async () => {
    const { context, start, stop, item } = worker();
    const pk = await start('stopped-meanwhile');
    const leases: LeasesTable = {
      ...context.leases,
      acquire: async (...request) => {
        await context.leases.acquire(...request);
        await stop('stopped-meanwhile');
        throw hangUp();
      },
    };
    expect(await claim({ ...context, leases }, pk)).toEqual({ won: false, why: 'held', owner: undefined });
    // The next look at all that this worker owns gives it back.
    expect((await item('stopped-meanwhile')).leaseOwner).toBe(context.presence.id);
  });
});

describe('an answer that comes late', () => {
  test('after the lease was over: won by the table, and not held', async () => {
    let lateMs = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + lateMs };
    const { context } = workerOn(aws, { clock });
    const { start } = wishes(context);
    const pk = await start('late');
    const leases: LeasesTable = {
      ...context.leases,
      acquire: async (...request) => {
        const answer = await context.leases.acquire(...request);
        lateMs = context.config.connectionLease.forMs - context.config.connectionLease.skewMs;
        return answer;
      },
    };
    expect(await claim({ ...context, leases }, pk)).toEqual({ won: false, why: 'late' });
  });
});

describe('adopting', () => {
  test('is refused once it isn’t ours in that epoch any more', async () => {
    const { context, start, item } = worker();
    const pk = await start('adopt-again');
    await context.leases.acquire(pk, context.presence.id, Date.now() + 5_000, Date.now());
    const { leaseEpoch } = await item('adopt-again');
    const first = await adopt(context, { pk, leaseEpoch });
    if (!first.won) throw new Error(`lost: ${first.why}`);
    expect(await adopt(context, { pk, leaseEpoch })).toEqual({ won: false, why: 'held', owner: undefined });
    first.lease.close();
  });

  test('doesn’t make an item', async () => {
    const { context, start } = worker();
    const pk = await start('deleted');
    await aws.dynamodb.send(new DeleteItemCommand({ TableName: aws.tables.connections, Key: { pk: { S: pk } } }));
    expect((await adopt(context, { pk, leaseEpoch: 0 })).won).toBe(false);
    expect(await context.connections.get(pk)).toBeUndefined();
  });
});
