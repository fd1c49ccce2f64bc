import type WebSocket from 'ws';
import { createMetrics } from '../../../shared/metrics.ts';
import { ClockSkew } from '../../../shared/skew.ts';
import { connectionsTable } from '../../../shared/tables/connections.ts';
import { leasesTable } from '../../../shared/tables/leases.ts';
import { messagesTable } from '../../../shared/tables/messages.ts';
import { workersTable } from '../../../shared/tables/workers.ts';
import type { Context } from '../../../worker/context.ts';
import { Presence } from '../../../worker/presence.ts';
import { createSink } from '../../../worker/sink.ts';
import { socketOpener } from '../../../worker/socket.ts';
import { Tombstones } from '../../../worker/tombstones.ts';
import { runWorker, type WorkerEnd } from '../../../worker/worker.ts';
import type { Host } from './host.ts';
import { SimulatedSocket } from './socket.ts';
import type { World } from './world.ts';

export type Member = {
  host: Host;
  sockets: Set<SimulatedSocket>;
  /** As ECS stops a task: SIGTERM, and SIGKILL when it takes too long. */
  stop: () => void;
  stopping: boolean;
};

/** The workers, as a service that keeps their number: one that ends is replaced after a while. */
export class Fleet {
  readonly members = new Set<Member>();
  replaceMs = { least: 500, most: 15_000 };
  /** Told of each process that is gone. */
  onEnd: (host: Host) => void = () => undefined;
  readonly #world: World;
  #started = 0;

  constructor(world: World, size: number) {
    this.#world = world;
    for (let count = 0; count < size; count++) this.#start();
  }

  /** The host behind a worker id. */
  hostOf(workerId: string): Host | undefined {
    return this.#world.owners.get(workerId);
  }

  running(): Member[] {
    return [...this.members].filter(({ host }) => host.state === 'running');
  }

  #start(): void {
    const world = this.#world;
    const { scheduler, config, checks } = world;
    const number = ++this.#started;
    const host = world.host(`worker-${number}`);
    const stop = new AbortController();
    const member: Member = {
      host,
      sockets: new Set(),
      stopping: false,
      stop: () => {
        if (member.stopping) return;
        member.stopping = true;
        scheduler.note('worker.sigterm', () => host.name);
        host.deliver(scheduler.nowMs, () => stop.abort());
        scheduler.after(config.stopTimeoutMs, () => host.die('killed'));
      },
    };
    this.members.add(member);
    host.onDeath.push(() => this.#ended(member));
    const over = new AbortController();
    host.deliver(scheduler.nowMs + world.random.int(0, 500), () => {
      scheduler.note('worker.started', () => `${host.name} skew ${host.skewMs}`);
      runWorker(this.#context(member, over.signal), stop.signal, () => undefined).then(
        (ending) => {
          over.abort();
          this.#returned(member, ending);
        },
        (fault: unknown) => checks.violate(5, `${host.name} ends with ${String(fault)}`),
      );
    });
  }

  /** The process ends itself now, as worker/main.ts does; where all went well, nothing is left for it to cut off. */
  #returned({ host, sockets }: Member, ending: WorkerEnd): void {
    const { scheduler, checks } = this.#world;
    scheduler.note('worker.returned', () => `${host.name} ${ending}`);
    if (ending === 'bad-clock') checks.violate(5, `${host.name} refuses its clock, which is off by ${host.skewMs} ms`);
    const open = [...sockets].filter(({ readyState }) => readyState !== 3).length;
    if (ending === 'drained' && (host.waiting > 0 || open > 0)) {
      checks.violate(5, `${host.name} has ended and leaves behind ${host.waiting} waits and ${open} sockets`);
    }
    host.die('exited');
  }

  #ended(member: Member): void {
    this.members.delete(member);
    this.onEnd(member.host);
    const { random, scheduler } = this.#world;
    scheduler.after(random.int(this.replaceMs.least, this.replaceMs.most), () => this.#start());
  }

  /** As worker/main.ts puts it together, from simulated parts. */
  #context({ host, ...member }: Member, over: AbortSignal): Context {
    const world = this.#world;
    const { clock } = host;
    const config = { ...world.config, taskArn: host.name };
    const random = world.random.fork().real;
    const log = world.log(host);
    const metrics = createMetrics(async () => undefined, log);
    const skew = new ClockSkew(clock);
    const control = world.dynamodb(host, skew);
    const messages = messagesTable(world.dynamodb(host), config.tables.messages, config.sink);
    const workers = workersTable(control, config.tables.workers);
    const connect = (url: URL) => this.#connect({ host, ...member }, url) as unknown as WebSocket;
    const newId = () => this.#newId(host);
    return {
      presence: new Presence({ config, clock, log, metrics, workers, newId }),
      tombstones: new Tombstones(workers),
      skew,
      config,
      clock,
      random,
      log,
      metrics,
      queue: world.queue.from(host, config.requestTimeoutMs),
      connections: connectionsTable(control, config.tables.connections, config),
      leases: leasesTable(control, config.tables.connections, config),
      messages,
      workers,
      sink: createSink({ messages, clock, random, log, metrics, bufferBytes: config.sink.bufferBytes, signal: over }),
      openSocket: socketOpener({ config, clock, random, connect }),
    };
  }

  /** A process takes a fresh id after each fence. */
  #newId(host: Host): string {
    const fresh = `w${this.#world.owners.size + 1}`;
    const id = this.#world.settings.variant?.newId?.(fresh, { world: this.#world, host }) ?? fresh;
    this.#world.owners.set(id, host);
    return id;
  }

  #connect(member: Member, url: URL): SimulatedSocket {
    const { scheduler, random, sources, checks } = this.#world;
    const { host, sockets } = member;
    const pk = `CONN#${url.pathname.slice(1)}`;
    const source = sources.get(pk);
    if (!source) throw new Error(`nothing is at ${url.href}`);
    checks.dialled(pk, host, (workerId) => this.hostOf(workerId) === host, url.searchParams.get('last_seq'));
    const socket = new SimulatedSocket({ scheduler, random, host, source }, url);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    return socket;
  }
}
