import pLimit from 'p-limit';
import type { Claim } from '../shared/tables/leases.ts';
import type { Context } from './context.ts';
import type { Holdings } from './holdings.ts';

/** Sockets are gone at once; what is waited for is writes that are on their way, and each has its request timeout. */
const requestsToEnd = 4;

/**
 * Lives under one id after the other: keeps the worker lease; when it is lost, lets go of everything, buries the id,
 * registers under a fresh one as soon as the store answers, and takes again what it held. So an outage of the store isn't
 * followed by a fleet of restarts.
 * @returns false when something of what was held couldn't be ended in time: this process must not go on
 */
export async function stayPresent(context: Context, holdings: Holdings, until: AbortSignal): Promise<boolean> {
  const { presence } = context;
  const load = () => ({ held: holdings.held, draining: holdings.draining });
  let takingAgain: Promise<void> | undefined;
  while (true) {
    presence.fenced.addEventListener('abort', () => holdings.fence(), { once: true });
    await presence.keep(load, until);
    if (until.aborted) break;
    const left = holdings.fence();
    if (!(await inTime(context, holdings.emptied()))) return false;
    if (!(await presence.bury(until)) || !(await presence.register(load, until))) break;
    holdings.reopened();
    // Not waited for: the new lease has to be renewed meanwhile.
    takingAgain = takeAgain(context, holdings, left);
  }
  await takingAgain;
  return true;
}

/** What isn't answered is found by the next sweep, which follows the old id's tombstone. */
async function takeAgain({ config, log, presence }: Context, holdings: Holdings, left: Claim[]): Promise<void> {
  log.info('worker.returned', { worker_id: presence.id, takes_again: left.length });
  const atOnce = pLimit(config.claimsAtOnce);
  await Promise.all(left.map((claim) => atOnce(() => holdings.take(claim.pk, claim))));
}

async function inTime({ clock, config }: Context, emptied: Promise<void>): Promise<boolean> {
  const done = new AbortController();
  const tooLate = clock.sleep(requestsToEnd * config.requestTimeoutMs, done.signal).then(() => false);
  const outcome = await Promise.race([emptied.then(() => true), tooLate]);
  done.abort();
  return outcome;
}
