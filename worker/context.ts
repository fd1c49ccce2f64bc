import type { Clock } from '../shared/clock.ts';
import type { Config } from '../shared/config.ts';
import type { Log } from '../shared/log.ts';
import type { Metrics } from '../shared/metrics.ts';
import type { Queue } from '../shared/queue.ts';
import type { ClockSkew } from '../shared/skew.ts';
import type { ConnectionsTable } from '../shared/tables/connections.ts';
import type { LeasesTable } from '../shared/tables/leases.ts';
import type { MessagesTable } from '../shared/tables/messages.ts';
import type { WorkersTable } from '../shared/tables/workers.ts';
import type { Presence } from './presence.ts';
import type { Sink } from './sink.ts';
import type { OpenSocket } from './socket.ts';
import type { Tombstones } from './tombstones.ts';
import type { Traces } from './traces.ts';

/** Everything that a worker touches outside itself. main.ts builds it from the real parts. */
export type Context = {
  /** The worker's own lease, and the id under which it claims. */
  presence: Presence;
  tombstones: Tombstones;
  /** Our wall clock against the store's. */
  skew: ClockSkew;
  config: Config;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  log: Log;
  metrics: Metrics;
  queue: Queue;
  connections: ConnectionsTable;
  leases: LeasesTable;
  messages: MessagesTable;
  workers: WorkersTable;
  sink: Sink;
  openSocket: OpenSocket;
  /** Left out: nothing is traced. */
  traces?: Traces | undefined;
};
