import { setTimeout as sleep } from 'node:timers/promises';
import { atMost, type Bench, type Case, type Check, exactly } from '../case.ts';
import { type Fleet, idsOf, inParallel } from '../fleet.ts';
import { settledAfter } from '../settle.ts';

const CHECK_EVERY_MS = 2_000;
const BOUND_MS = 3_000;
/** How long the proxy holds a claim, or a release, back. */
const HELD_BACK_MS = 1_500;
const LOOK_FOR_MS = 12_000;
const RATE = 1;

export const changedMind: Case = {
  name: 'changed-mind',
  what: 'STOP while the claim is in flight; STOP then START at once; START for a STOPPED one still closing',
  mustBe: 'ends as last said, within the bound (STOP check + 1 s, and what the proxy held back)',
  published: '–',
  async run(bench) {
    const env = { STOP_CHECK_EVERY: String(CHECK_EVERY_MS / 1000) };
    const fleet = await bench.fleet({ proxied: true, env });
    const count = bench.quick ? 10 : 40;
    const checks: Check[] = [];
    for (const story of [stopBeforeClaim, stopAfterUnansweredClaim, stopThenStart, startWhileClosing]) {
      checks.push(await story(bench, fleet, count));
    }
    const { summary } = await fleet.source.report();
    return { checks: [...checks, exactly('sockets held twice, at any time', summary.heldTwice, 0)] };
  },
};

async function stopBeforeClaim(bench: Bench, fleet: Fleet, count: number): Promise<Check> {
  const ids = idsOf('before', count);
  fleet.proxy.control({ delayMs: HELD_BACK_MS, operations: ['UpdateItem'] });
  await fleet.start(ids, { rate: RATE, atOnce: count });
  const saidAtMs = await say(ids, (id) => fleet.sendStop(id));
  bench.say('STOP while the claim is on its way to the table');
  fleet.proxy.control({ delayMs: 0 });
  return worst(
    'STOP before the claim is applied',
    await settledAfter(fleet, saidAtMs, 'STOPPED', LOOK_FOR_MS),
    HELD_BACK_MS,
  );
}

async function stopAfterUnansweredClaim(bench: Bench, fleet: Fleet, count: number): Promise<Check> {
  const ids = idsOf('after', count);
  fleet.proxy.control({ dropAnswerEvery: 1, operations: ['UpdateItem'] });
  await fleet.start(ids, { rate: RATE, atOnce: count });
  const saidAtMs = await say(ids, (id) => fleet.sendStop(id));
  bench.say('STOP when the claim was applied and its answer lost');
  fleet.proxy.control({ dropAnswerEvery: 0 });
  return worst('STOP after a claim without an answer', await settledAfter(fleet, saidAtMs, 'STOPPED', LOOK_FOR_MS), 0);
}

async function stopThenStart(bench: Bench, fleet: Fleet, count: number): Promise<Check> {
  const ids = idsOf('both', count);
  await fleet.start(ids, { rate: RATE });
  await fleet.allOpen(ids, 30_000);
  const saidAtMs = await say(ids, async (id) => {
    await fleet.sendStop(id);
    await fleet.sendStart(id, RATE);
  });
  bench.say('STOP, then START at once');
  return worst('STOP then START at once', await settledAfter(fleet, saidAtMs, 'STARTED', LOOK_FOR_MS), 0);
}

/** At any moment after STOP: not noticed yet, closing, closed. Releases take long, so that many are found closing. */
async function startWhileClosing(bench: Bench, fleet: Fleet, count: number): Promise<Check> {
  const ids = idsOf('closing', count);
  await fleet.start(ids, { rate: RATE });
  await fleet.allOpen(ids, 30_000);
  fleet.proxy.control({ delayMs: HELD_BACK_MS, operations: ['UpdateItem'] });
  const saidAtMs = await say(ids, async (id) => {
    await fleet.sendStop(id);
    await sleep(Math.random() * (CHECK_EVERY_MS + 2 * HELD_BACK_MS));
    await fleet.sendStart(id, RATE);
  });
  bench.say('STOP, then START at any moment while it closes');
  const tookMs = await settledAfter(fleet, saidAtMs, 'STARTED', LOOK_FOR_MS);
  fleet.proxy.control({ delayMs: 0 });
  // The release, then the claim of whoever takes it next.
  return worst('START while it still closes', tookMs, 2 * HELD_BACK_MS);
}

/** @returns when the last word on each was said, Unix ms */
async function say(ids: string[], what: (id: string) => Promise<void>): Promise<Map<string, number>> {
  const saidAtMs = new Map<string, number>();
  await inParallel(ids, ids.length, async (id) => {
    await what(id);
    saidAtMs.set(id, Date.now());
  });
  return saidAtMs;
}

function worst(what: string, tookMs: number[], heldBackMs: number): Check {
  return atMost(`${what}, slowest of ${tookMs.length}`, Math.max(...tookMs), BOUND_MS + heldBackMs);
}
