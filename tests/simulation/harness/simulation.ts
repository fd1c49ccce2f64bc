import { pkOf } from '../../../shared/connection.ts';
import { Api } from './api.ts';
import type { Violation } from './checks.ts';
import { Fleet } from './fleet.ts';
import { Reconciler } from './reconciler.ts';
import { type Cast, makeQuiet, playScript } from './script.ts';
import { boundMs, unsettled } from './settled.ts';
import { SimulatedSource } from './source.ts';
import { type Settings, World } from './world.ts';

export type Outcome = {
  seed: number;
  violation: Violation | undefined;
  virtualMs: number;
  steps: number;
  /** How long it took after the last fault until all was as it must be. */
  settledMs: number;
  messages: number;
  faults: Record<string, number>;
  hash: string;
  lines: string[];
};

const checkEveryMs = 2000;
/** Has to stay settled for so many checks: what comes to rest by chance for a moment doesn't count. */
const checksInARow = 4;
/** Many times what any simulation takes: something goes round and round. */
const mostSteps = 200_000;
/** As in worker/main.ts, a promise that nobody looks after ends the process. */
const lost = 'unhandledRejection';

/** One simulation from its beginning to its end. The same settings give the same outcome. */
export async function simulate(settings: Settings): Promise<Outcome> {
  const undo = settings.variant?.patch?.();
  const world = new World(settings);
  const onLost = (fault: unknown) => {
    const stack = fault instanceof Error ? fault.stack : undefined;
    world.checks.violate(5, `a rejection that nobody handles: ${stack ?? String(fault)}`);
  };
  process.on(lost, onLost);
  try {
    return await play(world);
  } finally {
    process.off(lost, onLost);
    world.forget();
    undo?.();
  }
}

async function play(world: World): Promise<Outcome> {
  const { random, scheduler, checks, trace, settings } = world;
  addSources(world);
  const fleet = new Fleet(world, random.int(2, 4));
  const cast: Cast = { world, fleet, api: new Api(world, 2), reconciler: new Reconciler(world) };
  reportEnds(cast);
  let settledMs = 0;
  let over = false;
  const quietAtMs = random.int(40_000, 150_000);
  playScript(cast, quietAtMs, () => {
    makeQuiet(cast);
    watch(cast, (tookMs) => {
      settledMs = tookMs;
      over = true;
    });
  });
  await scheduler.run(() => {
    if (scheduler.steps > mostSteps) checks.violate(5, `still going on after ${mostSteps} steps`);
    return over || checks.violation !== undefined;
  });
  return {
    seed: settings.seed,
    violation: checks.violation,
    virtualMs: scheduler.nowMs,
    steps: scheduler.steps,
    settledMs,
    messages: checks.messages,
    faults: Object.fromEntries(world.faults),
    hash: trace.hash,
    lines: trace.lines,
  };
}

function addSources(world: World): void {
  const { random, scheduler, sources, config } = world;
  const most = Math.min(8, 2 * config.maxConnections);
  for (let number = random.int(3, most); number > 0; number--) {
    const pk = pkOf(`c${number}`);
    const everyMs = random.pick([400, 900, 2000, 4000]);
    const shape = {
      pk,
      numbered: random.chance(0.7),
      everyMs,
      firstMs: random.int(0, everyMs),
      stride: random.pick([1, 1, 3]),
    };
    sources.set(pk, new SimulatedSource(scheduler, world.random.fork(), shape));
  }
}

/** ECS tells the reconciler of ended tasks: at least once, late, or (where there is no such rule) never. */
function reportEnds({ world, fleet, reconciler }: Cast): void {
  const { random, scheduler } = world;
  const share = random.pick([0, 0.5, 1]);
  fleet.onEnd = (host) => {
    for (let times = random.chance(share) ? random.int(1, 2) : 0; times > 0; times--) {
      scheduler.after(random.int(100, random.pick([1000, 20_000])), () =>
        reconciler.taskEvent(host.name, 'STOPPED', () => 'STOPPED'),
      );
    }
  };
}

/** Waits until all has been as it must be for a while. */
function watch(cast: Cast, done: (tookMs: number) => void): void {
  const { scheduler, checks } = cast.world;
  const sinceMs = scheduler.nowMs;
  const limitMs = boundMs(cast.world);
  let inARow = 0;
  const look = () => {
    const problem = unsettled(cast);
    inARow = problem === undefined ? inARow + 1 : 0;
    const tookMs = scheduler.nowMs - sinceMs;
    if (inARow === checksInARow) return done(tookMs - (checksInARow - 1) * checkEveryMs);
    if (problem !== undefined && tookMs > limitMs) {
      return checks.violate(3, `${limitMs / 1000} s after the last fault, ${problem}`);
    }
    scheduler.after(checkEveryMs, look);
  };
  scheduler.after(checkEveryMs, look);
}
