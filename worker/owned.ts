import pLimit from 'p-limit';
import { BrokenItemError, describe } from '../shared/errors.ts';
import type { OwnedRow } from '../shared/tables/connections.ts';
import type { Item } from '../shared/tables/item.ts';
import type { Context } from './context.ts';
import type { Holding } from './holding.ts';
import type { Holdings } from './holdings.ts';
import { logged } from './lease.ts';

/** A claim this fresh may not be in the index yet. */
const indexLagMs = 1000;
const looksAtOnce = 20;

/**
 * Compares, every so often, what the table says this worker owns with what it holds: one batched read for all
 * connections. That is how STOP, changed wishes, deleted items and lost answers of claims are noticed.
 */
export async function watchOwned(context: Context, holdings: Holdings, signal: AbortSignal): Promise<void> {
  const { clock, config, log, metrics, random } = context;
  // Spread, so that workers started together don't read together.
  await clock.sleep(config.stopCheckMs * random(), signal);
  while (!signal.aborted) {
    const startedMs = clock.monotonic();
    try {
      await compareOnce(context, holdings, startedMs);
    } catch (fault) {
      metrics.count('StoreFaults');
      log.warn('owned.unread', { fault: describe(fault) });
    }
    await clock.sleep(Math.max(0, config.stopCheckMs - (clock.monotonic() - startedMs)), signal);
  }
}

async function compareOnce(context: Context, holdings: Holdings, startedMs: number): Promise<void> {
  const unseen = new Set(holdings.all().filter((holding) => holding.sinceMs < startedMs - indexLagMs));
  const workerId = context.presence.id;
  const looks: Promise<void>[] = [];
  const atOnce = pLimit(looksAtOnce);
  let from: Item | undefined;
  do {
    const page = await context.connections.ownedBy(workerId, from);
    for (const row of page.rows) {
      const holding = holdings.get(row.pk);
      if (holding) unseen.delete(holding);
      const look = () => (holding ? compare(context, holding, row) : settle(context, holdings, { ...row, workerId }));
      looks.push(apart(context, { connection: row.pk, epoch: row.leaseEpoch }, () => atOnce(look)));
    }
    from = page.next;
  } while (from);
  // The index lags: only the items themselves can say that these aren't ours.
  for (const holding of unseen) {
    looks.push(apart(context, logged(holding.lease.claim), () => atOnce(() => verify(context, holding))));
  }
  await Promise.all(looks);
}

/** One item that can't be read, or one source that is slow to close, keeps no other connection from being looked at. */
async function apart(
  { log, metrics }: Context,
  about: ReturnType<typeof logged>,
  look: () => Promise<void>,
): Promise<void> {
  try {
    await look();
  } catch (fault) {
    metrics.count('StoreFaults');
    log.warn('owned.unsettled', { ...about, fault: describe(fault) });
  }
}

async function compare(context: Context, holding: Holding, row: OwnedRow): Promise<void> {
  const newer = row.leaseEpoch === holding.lease.claim.epoch && row.generation >= holding.generation;
  if (!newer) return;
  if (row.desiredState === 'STOPPED') holding.end({ why: 'stopped' });
  else if (row.generation > holding.generation) await verify(context, holding);
}

/** Looks at the item itself, and does what it says. */
async function verify(context: Context, holding: Holding): Promise<void> {
  const { claim } = holding.lease;
  const item = await context.connections.get(claim.pk);
  // Given back meanwhile: nothing was lost. One that is ending still stores what it has read, and has to be told.
  if (holding.givingBack) return;
  if (!item) return holding.lease.lose('gone');
  if (item.leaseOwner !== claim.owner || item.leaseEpoch !== claim.epoch) return holding.lease.lose('refused');
  if (item.desiredState === 'STOPPED') return holding.end({ why: 'stopped' });
  await holding.change(item);
}

/**
 * Ours by the table, but not held: an acquisition was applied and its answer was lost. Hold it, or give it back when it
 * isn't wanted any more, or there is no room.
 */
async function settle(context: Context, holdings: Holdings, row: OwnedRow & { workerId: string }): Promise<void> {
  const { clock, leases, log, queue, presence } = context;
  // Fenced meanwhile: what was owned under that id is no longer ours to decide.
  if (!presence.valid(row.workerId)) return;
  if (holdings.has(row.pk)) return;
  if (await isBroken(context, row)) return;
  if (row.desiredState === 'STARTED' && (await holdings.adopt(row)) !== 'no-room') return;
  const claim = { pk: row.pk, owner: row.workerId, epoch: row.leaseEpoch };
  const wanted = row.desiredState === 'STARTED';
  const status = { status: wanted ? ('PENDING' as const) : ('CLOSED' as const), attempts: 0 };
  const after = await leases.release(claim, { lastSeq: undefined, status }, clock.now());
  if (after === 'refused') return;
  log.info('claim.returned', logged(claim));
  if (after.desiredState === 'STARTED') await queue.send({ pk: row.pk });
}

/**
 * A claim on an item that somebody has damaged is applied all the same, and nobody can hold it. It is given back, so that
 * it shows among the orphans as broken, rather than to be owned by a worker that can't do anything with it.
 */
async function isBroken(
  { connections, leases, clock, log }: Context,
  row: OwnedRow & { workerId: string },
): Promise<boolean> {
  const claim = { pk: row.pk, owner: row.workerId, epoch: row.leaseEpoch };
  try {
    await connections.get(row.pk);
    return false;
  } catch (fault) {
    if (!(fault instanceof BrokenItemError)) throw fault;
    log.error('item.broken', { ...logged(claim), fault: describe(fault) });
  }
  try {
    await leases.release(claim, { lastSeq: undefined, status: { status: 'PENDING', attempts: 0 } }, clock.now());
  } catch (fault) {
    // Applied, and answered with the same damage.
    if (!(fault instanceof BrokenItemError)) throw fault;
  }
  return true;
}
