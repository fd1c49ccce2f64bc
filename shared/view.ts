import { bucketOf, type Connection, idOf } from './connection.ts';
import { positionPlaceholder } from './source.ts';

export const isoTime = (ms: number | undefined): string | null =>
  ms === undefined || ms === 0 ? null : new Date(ms).toISOString();

/** A connection as people see it. What it doesn't have is null, so that every connection has the same fields. */
export function connectionView(connection: Connection, nowMs: number) {
  const { leaseOwner, leaseExpiresAtMs } = connection;
  const leased = leaseOwner !== undefined && leaseExpiresAtMs > nowMs;
  return {
    connection_id: idOf(connection.pk),
    desired_state: connection.desiredState,
    // The owner of a stopped connection may have died before it could say so; nobody holds it without a lease.
    status: connection.desiredState === 'STOPPED' && !leased ? 'CLOSED' : connection.status,
    reason: connection.statusReason ?? null,
    attempts: connection.attempts,
    owner: leased ? leaseOwner : null,
    /** The last worker that owned it, when it went without a word. */
    lost_by: leaseOwner !== undefined && !leased ? leaseOwner : null,
    lease_runs_until: leaseOwner === undefined ? null : isoTime(leaseExpiresAtMs),
    lease_expires_at_ms: leaseExpiresAtMs,
    next_try_at: leaseOwner === undefined && leaseExpiresAtMs > nowMs ? isoTime(leaseExpiresAtMs) : null,
    waiting_for_worker: bucketOf(connection) === 'STARTED' && leaseExpiresAtMs <= nowMs,
    epoch: connection.leaseEpoch,
    generation: connection.generation,
    last_seq: connection.lastSeq ?? null,
    ws_url: withoutQueryValues(connection.wsUrl),
    source: connection.source,
    opened_at: isoTime(connection.openedAtMs),
    event_time: isoTime(connection.eventTimeMs),
    created_at: isoTime(connection.createdAtMs),
    updated_at: isoTime(connection.updatedAtMs),
  };
}

export type ConnectionView = ReturnType<typeof connectionView>;

/**
 * Many sources take their token in the query, and whoever may look at a connection need not be allowed to dial its
 * source. So the names are shown, and not what they are set to; where there are no names, nothing is.
 */
export function withoutQueryValues(wsUrl: string): string {
  const start = wsUrl.indexOf('?') + 1;
  if (start === 0) return wsUrl;
  const masked = wsUrl
    .slice(start)
    .split('&')
    .map((part) => {
      const equals = part.indexOf('=') + 1;
      const value = part.slice(equals);
      return part.slice(0, equals) + (value === '' || value === positionPlaceholder ? value : '***');
    });
  return wsUrl.slice(0, start) + masked.join('&');
}
