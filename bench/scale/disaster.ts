/** A third of the workers is gone at once: how long until all that they held is owned again, and open. */
import type { Item } from '../../shared/tables/item.ts';
import { Capacity } from '../world/capacity.ts';
import { SimulatedFleet } from '../world/fleet.ts';
import type { Line } from '../world/ledger.ts';
import { tableNames } from '../world/tables.ts';
import { type Quiet, quietMinute } from './quiet.ts';
import type { Assumptions, Disaster } from './scenarios.ts';

export type Recovery = {
  disaster: Disaster;
  /** Before it happened. */
  quiet: Quiet;
  orphans: number;
  /** Milliseconds from the first report, or from the death of those that aren't reported. In order. */
  ownedMs: number[];
  openMs: number[];
  /** Until all were owned. */
  lines: Line[];
  throttled: number;
  wakeUpsSent: number;
};

/** Half the time between two sweeps, after a minute of them. */
const halfSweepMs = 2501;
const patienceMs = 120_000;

export async function happen(disaster: Disaster, assumed: Assumptions): Promise<Recovery> {
  const dead = new Set<string>();
  const owned = new Map<string, number>();
  const open = new Map<string, number>();
  const fleet = new SimulatedFleet({
    ...disaster,
    traffic: { connectMs: assumed.connectMs },
    latencies: assumed,
    indexLagMs: assumed.indexLagMs,
    depthLagMs: assumed.depthLagMs,
    onWrite: (table, before, after) => {
      if (dead.size === 0 || table !== tableNames.connections) return;
      const pk = after['pk']?.S ?? '';
      if (moved(dead, before, after)) owned.set(pk, fleet.time.nowMs);
      else if (owned.has(pk) && after['status']?.S === 'OPEN') open.set(pk, fleet.time.nowMs);
    },
  });
  await fleet.begin();
  const quiet = await quietMinute(fleet);
  await fleet.time.runFor(halfSweepMs);

  const { time, ledger, members } = fleet;
  const gone = members.slice(0, Math.round(members.length / 3));
  for (const member of gone) dead.add(member.workerId());
  const orphans = ownedBy(fleet, dead);
  const capacity = new Capacity(() => time.nowMs, disaster.perTable);
  fleet.store.capacity = capacity;
  ledger.clear();
  fleet.kill(gone);
  const sinceMs = time.nowMs;
  if (disaster.reported) report(fleet, gone, assumed);
  await time.run(() => owned.size === orphans || time.nowMs - sinceMs > patienceMs);
  const lines = ledger.lines.map((line) => ({ ...line }));
  const { throttled } = capacity;
  await time.run(() => open.size === orphans || time.nowMs - sinceMs > patienceMs);

  const since = (times: Map<string, number>) => [...times.values()].map((atMs) => atMs - sinceMs).sort((a, b) => a - b);
  return {
    disaster,
    quiet,
    orphans,
    ownedMs: since(owned),
    openMs: since(open),
    lines,
    throttled,
    wakeUpsSent: fleet.queue.sent,
  };
}

const moved = (dead: Set<string>, before: Item | undefined, after: Item): boolean =>
  dead.has(before?.['lease_owner']?.S ?? '') && !dead.has(after['lease_owner']?.S ?? '');

function ownedBy({ store }: SimulatedFleet, dead: Set<string>): number {
  const items = [...store.table(tableNames.connections).all()];
  return items.filter((item) => dead.has(item['lease_owner']?.S ?? '')).length;
}

/** The first of them at once. */
function report(fleet: SimulatedFleet, gone: SimulatedFleet['members'], assumed: Assumptions): void {
  gone.forEach((member, place) => {
    const afterMs = (place / gone.length) * assumed.reportsWithinMs;
    void fleet.time.pass(afterMs).then(() => fleet.reportStopped(member, assumed.coldStartMs));
  });
}
