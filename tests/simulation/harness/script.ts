import { pkOf } from '../../../shared/connection.ts';
import type { Api, SentEvent } from './api.ts';
import type { Fleet } from './fleet.ts';
import type { Host } from './host.ts';
import type { Kind } from './kinds.ts';
import { calm, type Weather } from './network.ts';
import { noTrouble } from './queue.ts';
import type { Reconciler } from './reconciler.ts';
import { goodMood, type Mood, type SimulatedSource } from './source.ts';
import { mostIndexLagMs, type World } from './world.ts';

export type Cast = { world: World; fleet: Fleet; api: Api; reconciler: Reconciler };

const weathers: Record<string, Weather> = {
  calm,
  rough: { ok: 90, slow: 3, lost: 1, unanswered: 2, late: 2, reset: 1, throttled: 1 },
  bad: { ok: 60, slow: 10, lost: 4, unanswered: 8, late: 8, reset: 4, throttled: 6 },
  slow: { ok: 1, slow: 3 },
  mute: { ok: 1, unanswered: 2, late: 1 },
  down: { lost: 1 },
  storm: { ok: 25, slow: 15, lost: 15, unanswered: 15, late: 15, reset: 5, throttled: 10 },
};

/** Where a fault does most harm. */
const aims: Record<Kind, number> = {
  take: 5,
  release: 3,
  worker: 3,
  messages: 2,
  renew: 2,
  expire: 1,
  status: 1,
  want: 1,
  read: 1,
};

/** What may go wrong, how often, and how it is done. A simulation has some kinds of it, not all: so each gets its turn. */
const acts = {
  crash: { weight: 3, do: crash },
  sigterm: { weight: 3, do: sigterm },
  freeze: { weight: 5, do: freeze },
  trap: { weight: 4, do: trap },
  storeWeather: { weight: 5, do: storeWeather },
  storeAimed: { weight: 5, do: storeAimed },
  storeSilent: { weight: 4, do: storeSilent },
  lastWord: { weight: 4, do: lastWord },
  queueWeather: { weight: 2, do: queueWeather },
  indexLag: { weight: 2, do: indexLag },
  drop: { weight: 3, do: drop },
  cut: { weight: 2, do: cut },
  mood: { weight: 3, do: mood },
  clock: { weight: 2, do: clockStep },
  events: { weight: 6, do: someEvent },
  manyEvents: { weight: 2, do: manyEvents },
  deletion: { weight: 2, do: deletion },
  reconciler: { weight: 2, do: reconcilerTrouble },
  byHand: { weight: 1, do: byHand },
  falseEvent: { weight: 1, do: falseEvent },
} satisfies Record<string, { weight: number; do: (cast: Cast) => void }>;

type ActName = keyof typeof acts;

/** Lets things go wrong until `untilMs`, then takes away every reason for more of it. */
export function playScript(cast: Cast, untilMs: number, quiet: () => void): void {
  const { world } = cast;
  const { random, scheduler } = world;
  const names = (Object.keys(acts) as ActName[]).filter(() => random.chance(0.6));
  const weights = Object.fromEntries(names.map((name) => [name, acts[name].weight]));
  const paceMs = random.pick([2000, 5000, 12_000]);
  world.storeNetwork.latestMs = untilMs;
  world.queueNetwork.latestMs = untilMs;
  startAll(cast);
  const turn = () => {
    if (scheduler.nowMs >= untilMs) return quiet();
    if (names.length > 0) {
      const name = random.weighted<ActName>(weights);
      world.count(name);
      acts[name].do(cast);
    }
    scheduler.after(random.int(Math.ceil(paceMs / 5), paceMs * 2), turn);
  };
  scheduler.after(random.int(3000, 15_000), turn);
}

/** Everybody is well from here on. What is on its way arrives; whoever is frozen is thawed by then. */
export function makeQuiet({ world, reconciler, fleet }: Cast): void {
  world.scheduler.note('quiet');
  world.storeNetwork.clear();
  world.queueNetwork.clear();
  world.queue.trouble = noTrouble;
  world.trap = undefined;
  world.indexLagMs = 100;
  world.leaveOut = 0;
  for (const source of world.sources.values()) source.mood = goodMood;
  fleet.replaceMs = { least: 500, most: 1500 };
  reconciler.redeploy();
}

export function startEvent(source: SimulatedSource, version: number): SentEvent {
  const { pk, numbered } = source.shape;
  const id = pk.slice(pkOf('').length);
  const query = numbered ? `?v=${version}&last_seq={last_seq}` : `?v=${version}`;
  return {
    event_type: 'START',
    connection_id: id,
    ws_url: `wss://source.example/${id}${query}`,
    source: { name: numbered ? 'numbered' : 'plain' },
  };
}

function startAll({ world, api }: Cast): void {
  for (const source of world.sources.values()) {
    world.scheduler.after(world.random.int(0, 4000), () => api.send(startEvent(source, 1)));
  }
}

function crash({ world, fleet }: Cast): void {
  const members = [...fleet.members];
  if (members.length > 0) world.random.pick(members).host.die('crashed');
}

function sigterm({ world, fleet }: Cast): void {
  const members = fleet.running();
  if (members.length > 0) world.random.pick(members).stop();
}

function freeze({ world, fleet }: Cast): void {
  const members = fleet.running();
  if (members.length > 0) world.random.pick(members).host.freeze(freezeMs(world));
}

/** Long enough to matter, and over before all is to be well. */
function freezeMs({ random, scheduler, storeNetwork }: World): number {
  const forMs = random.pick([random.int(100, 3000), random.int(3000, 18_000), random.int(18_000, 50_000)]);
  return Math.min(forMs, storeNetwork.latestMs - scheduler.nowMs);
}

/** Stopped, or gone, right after it has sent something. */
function trap({ world }: Cast): void {
  const { random } = world;
  const crashes = random.chance(0.3);
  const spring = (host: Host) => {
    if (crashes && !host.name.startsWith('api')) host.die('crashed');
    else if (freezeMs(world) > 0) host.freeze(freezeMs(world));
  };
  world.trap = { kind: random.weighted(aims), spring };
}

function storeWeather({ world }: Cast): void {
  world.storeNetwork.weather = weathers[world.random.weighted({ calm: 3, rough: 3, bad: 3, storm: 1 })] ?? calm;
}

function storeAimed({ world }: Cast): void {
  const { random, storeNetwork } = world;
  const weather = weathers[random.pick(['bad', 'storm', 'slow', 'mute', 'mute', 'down'])] ?? calm;
  storeNetwork.aimed = random.chance(0.3) ? undefined : { kind: random.weighted(aims), weather };
}

function storeSilent({ world, fleet }: Cast): void {
  const { random, storeNetwork } = world;
  const members = fleet.running();
  const host = members.length > 0 && random.chance(0.7) ? random.pick(members).host : undefined;
  storeNetwork.silence(
    host,
    random.pick([random.int(1000, 8000), random.int(8000, 22_000), random.int(20_000, 45_000)]),
  );
}

/** A renewal takes long and is answered just in time; after it, the host is cut off until its lease is over. */
function lastWord({ world }: Cast): void {
  const { random, config, storeNetwork } = world;
  const kind: Kind = config.workerLease ? 'worker' : 'renew';
  storeNetwork.aimed = { kind, weather: { slow: 1 } };
  const spring = (host: Host) => {
    if (storeNetwork.aimed?.kind === kind) storeNetwork.aimed = undefined;
    storeNetwork.silence(host, random.int(22_000, 40_000));
  };
  world.trap = { kind, spring };
}

function queueWeather({ world }: Cast): void {
  const { random, queue, queueNetwork } = world;
  queueNetwork.weather = weathers[random.pick(['calm', 'rough', 'bad', 'storm'])] ?? calm;
  queue.trouble = random.chance(0.3) ? noTrouble : { loss: 0.1, twice: 0.3, slow: 0.3 };
}

function indexLag({ world }: Cast): void {
  const { random } = world;
  world.indexLagMs = random.pick([5, 100, 800, mostIndexLagMs]);
  world.pageRows = random.pick([1, 2, 3, 10]);
  world.leaveOut = random.pick([0, 0.05, 0.3]);
}

function someSource({ world }: Cast): SimulatedSource {
  return world.random.pick([...world.sources.values()]);
}

function drop(cast: Cast): void {
  someSource(cast).dropAll(cast.world.random.pick([1006, 1001, 1011, 4000]), 'that is all');
}

function cut(cast: Cast): void {
  const { world, fleet } = cast;
  for (const member of fleet.members) {
    for (const socket of member.sockets) if (world.random.chance(0.3)) socket.cut();
  }
}

function mood(cast: Cast): void {
  const { random, scheduler, checks } = cast.world;
  const source = someSource(cast);
  const final = random.chance(0.1);
  const moods: Partial<Mood>[] = [
    { refuse: 500 },
    { refuse: 503, retryAfterSeconds: random.int(1, 10) },
    { refuse: 429 },
    { deaf: true },
    { closeMs: random.int(500, 6000) },
  ];
  if (final) checks.refusedForGood.add(source.shape.pk);
  source.mood = { ...goodMood, ...(final ? { refuse: random.pick([401, 403, 410]) } : random.pick(moods)) };
  scheduler.note('source.mood', () => `${source.shape.pk} ${JSON.stringify(source.mood)}`);
  scheduler.after(random.int(2000, 20_000), () => {
    source.mood = goodMood;
  });
}

function clockStep({ world, fleet }: Cast): void {
  const members = [...fleet.members];
  if (members.length === 0) return;
  const { host } = world.random.pick(members);
  host.skewMs = world.skewMs();
  world.scheduler.note('host.clock', () => `${host.name} skew ${host.skewMs}`);
}

function someEvent(cast: Cast): void {
  const { world, api } = cast;
  const { random } = world;
  const source = someSource(cast);
  const start = startEvent(source, random.int(1, 2));
  const event: SentEvent = random.chance(0.6) ? start : { event_type: 'STOP', connection_id: start.connection_id };
  // Seen by its sender a moment ago, by another clock.
  if (random.chance(0.3)) {
    event.event_time = world.nowMs() - random.int(0, 20_000);
    api.forget(start.connection_id);
  }
  api.send(event);
}

function manyEvents(cast: Cast): void {
  for (let count = cast.world.random.int(2, 5); count > 0; count--) someEvent(cast);
}

/** Somebody deletes an item, and starts the connection anew a while later. */
function deletion(cast: Cast): void {
  const { world, api } = cast;
  const { random, scheduler } = world;
  const source = someSource(cast);
  if (!world.deleteConnection(source.shape.pk)) return;
  const event = startEvent(source, 1);
  api.forget(event.connection_id);
  if (random.chance(0.8)) scheduler.after(random.int(2000, 10_000), () => api.send(event));
}

function reconcilerTrouble({ world, reconciler }: Cast): void {
  reconciler.next = world.random.pick(['absent', 'hangs', 'dies', 'twice']);
}

function byHand(cast: Cast): void {
  const { world, reconciler } = cast;
  const { random } = world;
  const id = someSource(cast).shape.pk.slice(pkOf('').length);
  const dryRun = random.chance(0.2);
  reconciler.byHand(
    random.pick([{ dryRun }, { dryRun, connectionId: id }, { dryRun, workerId: `w${random.int(1, 6)}` }]),
  );
}

/** ECS events that say nothing, or that are wrong: the task runs. */
function falseEvent({ world, fleet, reconciler }: Cast): void {
  const members = fleet.running();
  if (members.length === 0) return;
  const { host } = world.random.pick(members);
  reconciler.taskEvent(host.name, world.random.pick(['RUNNING', 'STOPPING', 'STOPPED']), () =>
    host.state === 'dead' ? 'STOPPED' : 'RUNNING',
  );
}
