import { bucketOf } from '../../../shared/connection.ts';
import { toConnection } from '../../../shared/tables/item.ts';
import { beginningMs } from './host.ts';
import type { Cast } from './script.ts';
import type { SimulatedSource } from './source.ts';
import { tableNames } from './table.ts';

/** A message is stored this long after it was sent, at the latest, when all is well. */
const storedWithinMs = 3000;

/** @returns what isn't yet as it must be when all is well; undefined: everything is */
export function unsettled(cast: Cast): string | undefined {
  for (const source of cast.world.sources.values()) {
    const problem = unsettledOne(cast, source);
    if (problem !== undefined) return `${source.shape.pk} ${problem}`;
  }
  return undefined;
}

/** The longest that it may take from when all is well until everything is as it must be. */
export function boundMs({ config }: Cast['world']): number {
  const { lease, connectionLease, reconcile, stopCheckMs, socket, longPollSeconds, requestTimeoutMs } = config;
  const backstopMs = connectionLease.forMs <= 60_000 ? connectionLease.forMs : 0;
  const ownerKnown = Math.max(2 * lease.forMs, backstopMs) + lease.skewMs + reconcile.sweepMs;
  const hintArrives = 30_000 + longPollSeconds * 1000;
  const workerActs = 2 * stopCheckMs + 4 * requestTimeoutMs;
  const socketOpens = socket.pingMs + socket.pongMs + socket.connectMs + 10_000 + socket.backoff.capMs;
  return ownerKnown + hintArrives + workerActs + socketOpens;
}

function unsettledOne({ world, fleet, api }: Cast, source: SimulatedSource): string | undefined {
  const { pk } = source.shape;
  const { nowMs } = world.scheduler;
  const item = world.tables[tableNames.connections]?.get(pk);
  const sockets = [...source.open];
  if (!item) return sockets.length > 0 ? `was deleted, and has ${sockets.length} sockets` : undefined;
  const connection = toConnection(item);
  const expected = api.expected(pk.slice('CONN#'.length));
  if (expected !== undefined && expected !== connection.desiredState) {
    return `is ${connection.desiredState}, but the last event that was answered says ${expected}`;
  }
  if (bucketOf(connection) !== 'STARTED') {
    // Without the worker lease nobody clears what a dead owner left in an item that isn't wanted; it has run out by itself.
    const owned =
      connection.leaseOwner !== undefined && (world.config.workerLease || connection.leaseExpiresAtMs > world.nowMs());
    if (owned) return `isn't wanted, but ${connection.leaseOwner} owns it`;
    return sockets.length > 0 ? `isn't wanted, but has ${sockets.length} sockets` : undefined;
  }
  const { leaseOwner } = connection;
  const host = leaseOwner === undefined ? undefined : fleet.hostOf(leaseOwner);
  if (!host) return 'has no owner';
  if (host.state !== 'running') return `belongs to ${leaseOwner}, whose process is ${host.state}`;
  if (connection.leaseExpiresAtMs < beginningMs + nowMs - 1000)
    return `belongs to ${leaseOwner}, whose lease has run out`;
  const [socket] = sockets;
  if (sockets.length !== 1 || !socket) return `has ${sockets.length} sockets`;
  if (socket.host !== host) return `belongs to ${leaseOwner}, but its socket to ${socket.host.name}`;
  if (socket.url.searchParams.get('v') !== new URL(connection.wsUrl).searchParams.get('v'))
    return 'has an old URL open';
  if (!source.shape.numbered) return undefined;
  const missing = source.produced(nowMs - storedWithinMs) - world.checks.completeUpTo(pk);
  return missing > 0 ? `lacks message ${source.frame(world.checks.completeUpTo(pk)).seq}` : undefined;
}
