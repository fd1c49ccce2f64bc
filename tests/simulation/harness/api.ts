import { changeDesiredState } from '../../../functions/desired-state.ts';
import { Refusal } from '../../../functions/refusal.ts';
import { createMetrics } from '../../../shared/metrics.ts';
import { connectionsTable } from '../../../shared/tables/connections.ts';
import type { Host } from './host.ts';
import type { World } from './world.ts';

export type SentEvent = {
  event_type: 'START' | 'STOP';
  connection_id: string;
  ws_url?: string;
  source?: object;
  event_time?: number;
};

/** What somebody outside may expect of a connection, as far as the answers that they got allow to expect anything. */
type Expected = { state: 'STARTED' | 'STOPPED' | undefined; unsureUntilMs: number; events: number; underway: number };

/** No write arrives later than this. */
const latestWriteMs = 60_000;

/** The function behind POST /events, on a machine of its own. */
export class Api {
  readonly #world: World;
  readonly #handlers: { host: Host; handle: ReturnType<typeof changeDesiredState> }[];
  readonly #expected = new Map<string, Expected>();

  constructor(world: World, machines: number) {
    this.#world = world;
    this.#handlers = Array.from({ length: machines }, (_, number) => this.#machine(`api-${number + 1}`));
  }

  /** What the connection must be in the end; undefined: its events overlapped or weren't answered, so nobody can say. */
  expected(id: string): 'STARTED' | 'STOPPED' | undefined {
    return this.#expected.get(id)?.state;
  }

  /** Nobody's word about this connection counts any more. */
  forget(id: string, forMs = 0): void {
    const expected = this.#of(id);
    expected.state = undefined;
    expected.unsureUntilMs = this.#world.scheduler.nowMs + forMs;
  }

  send(event: SentEvent): void {
    const { random, scheduler } = this.#world;
    const { host, handle } = random.pick(this.#handlers);
    const expected = this.#of(event.connection_id);
    const first = expected.underway === 0 && scheduler.nowMs >= expected.unsureUntilMs;
    const number = ++expected.events;
    expected.underway++;
    expected.state = undefined;
    scheduler.note('api.asked', () => JSON.stringify(event));
    const log = this.#world.log(host);
    host.deliver(scheduler.nowMs, () => {
      handle({ path: {}, query: {}, body: event, log }).then(
        ({ status }) => {
          scheduler.note('api.answered', () => `${event.event_type} ${event.connection_id} ${status}`);
          expected.underway--;
          const alone = first && number === expected.events;
          if (alone) expected.state = event.event_type === 'START' ? 'STARTED' : 'STOPPED';
        },
        (fault: unknown) => {
          scheduler.note('api.failed', () => `${event.event_type} ${event.connection_id} ${String(fault)}`);
          expected.underway--;
          // Its write may still be on the way.
          if (!(fault instanceof Refusal) || fault.status >= 500) this.forget(event.connection_id, latestWriteMs);
        },
      );
    });
  }

  #of(id: string): Expected {
    let expected = this.#expected.get(id);
    if (!expected) {
      expected = { state: undefined, unsureUntilMs: 0, events: 0, underway: 0 };
      this.#expected.set(id, expected);
    }
    return expected;
  }

  #machine(name: string) {
    const world = this.#world;
    const { config } = world;
    const host = world.host(name);
    const parts = {
      connections: connectionsTable(world.dynamodb(host), config.tables.connections, config),
      queue: world.queue.from(host, config.requestTimeoutMs),
      clock: host.clock,
      metrics: createMetrics(async () => undefined, world.log(host)),
      random: world.random.fork().real,
      allowedHosts: config.allowedHosts,
      wakeUpWithinMs: config.requestTimeoutMs,
    };
    return { host, handle: changeDesiredState(parts) };
  }
}
