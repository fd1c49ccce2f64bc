import { pkOf } from '../../../shared/connection.ts';
import { Api } from './api.ts';
import { Fleet, type Member } from './fleet.ts';
import { Reconciler } from './reconciler.ts';
import { type Cast, startEvent } from './script.ts';
import { unsettled } from './settled.ts';
import { SimulatedSource, type StreamShape } from './source.ts';
import { tableNames } from './table.ts';
import { World } from './world.ts';

export type Plot = {
  seed: number;
  workerLease?: boolean;
  connections: number;
  workers: number;
  /** Between two messages of a source. */
  everyMs: number;
  environment?: NodeJS.ProcessEnv;
};

const lookEveryMs = 500;

/**
 * A fleet on which a test plays one scenario, step by step in virtual time. Nothing goes wrong of itself, and nobody tells
 * the reconciler of ended tasks. The invariants are checked all the while.
 */
export class Stage {
  readonly cast: Cast;
  readonly world: World;

  constructor({ seed, workerLease = true, connections, workers, everyMs, environment = {} }: Plot) {
    const world = new World({ seed, trace: false, variant: undefined, workerLease, environment });
    this.world = world;
    world.pageRows = 100;
    world.indexLagMs = 100;
    for (let number = 1; number <= connections; number++) {
      const firstMs = world.random.int(1, everyMs);
      const shape: StreamShape = { pk: pkOf(`c${number}`), numbered: true, everyMs, firstMs, stride: 1 };
      world.sources.set(shape.pk, new SimulatedSource(world.scheduler, world.random.fork(), shape));
    }
    const fleet = new Fleet(world, workers);
    fleet.replaceMs = { least: 500, most: 1500 };
    this.cast = { world, fleet, api: new Api(world, 2), reconciler: new Reconciler(world) };
  }

  /** Somebody asks for all connections (again). */
  startAll(): void {
    for (const source of this.world.sources.values()) this.cast.api.send(startEvent(source, 1));
  }

  /** Lets time go on. @throws when an invariant is broken meanwhile */
  async wait(ms: number): Promise<void> {
    const { scheduler, checks } = this.world;
    let over = false;
    scheduler.after(ms, () => {
      over = true;
    });
    await scheduler.run(() => over || checks.violation !== undefined);
    const { violation } = checks;
    if (violation) throw new Error(`invariant ${violation.invariant} at ${violation.atMs} ms: ${violation.what}`);
  }

  /** What isn't as it must be. */
  problem(): string | undefined {
    return unsettled(this.cast);
  }

  /** @returns how long it took until all was as it must be. @throws when it takes longer than `withinMs` */
  async settled(withinMs: number): Promise<number> {
    const { scheduler } = this.world;
    const sinceMs = scheduler.nowMs;
    for (let problem = this.problem(); problem !== undefined; problem = this.problem()) {
      if (scheduler.nowMs - sinceMs >= withinMs) throw new Error(`after ${withinMs / 1000} s ${problem}`);
      await this.wait(lookEveryMs);
    }
    return scheduler.nowMs - sinceMs;
  }

  /** What a worker owns, by the table. */
  ownedBy({ host }: Member): string[] {
    return [...(this.world.tables[tableNames.connections]?.all() ?? [])].flatMap(({ pk, lease_owner: owner }) =>
      owner?.S !== undefined && this.cast.fleet.hostOf(owner.S) === host ? [pk?.S ?? ''] : [],
    );
  }

  /** The end of the worker that owns most, which nobody reports. @returns what it owned */
  crashOne(): string[] {
    const owned = (member: Member) => this.ownedBy(member);
    const [victim] = [...this.cast.fleet.members].sort((a, b) => owned(b).length - owned(a).length);
    if (!victim) throw new Error('there is no worker');
    const left = owned(victim);
    victim.host.die('crashed');
    return left;
  }

  /** Nothing of it is needed any more. */
  end(): void {
    this.world.forget();
  }
}
