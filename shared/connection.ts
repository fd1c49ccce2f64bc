import { createHash } from 'node:crypto';

/** STARTED: somebody wants the socket to exist. STOPPED: nobody does. Only the API changes it. */
export type DesiredState = 'STARTED' | 'STOPPED';

/**
 * What has become of it, for people. Nothing is decided by it, but that FAILED isn't tried again before the next START.
 * - PENDING     wanted, no worker has it yet (or it is being handed over)
 * - CONNECTING  a worker owns it and dials
 * - OPEN        the socket is open
 * - RETRYING    the last try failed; `statusReason` says why, `attempts` how often in a row
 * - FAILED      the source said no for good; START again to try once more
 * - CLOSED      stopped and let go
 */
export type Status = 'PENDING' | 'CONNECTING' | 'OPEN' | 'RETRYING' | 'FAILED' | 'CLOSED';

/** Which profile talks to the source, and what it needs to know. */
export type SourceChoice = { name: string; parameters?: Record<string, unknown> | undefined };

export type Connection = {
  pk: string;
  desiredState: DesiredState;
  wsUrl: string;
  source: SourceChoice;
  /** One more at each START that changes what is wanted. */
  generation: number;
  leaseOwner?: string | undefined;
  /** Unix ms. 0: free. In the future without an owner: nobody shall try before then. */
  leaseExpiresAtMs: number;
  /** Fencing number: one more at each acquisition, never less. */
  leaseEpoch: number;
  /** Resume position, the source's own sequence number in decimal digits. */
  lastSeq?: string | undefined;
  status: Status;
  statusReason?: string | undefined;
  /** Failed tries in a row. */
  attempts: number;
  openedAtMs?: number | undefined;
  createdAtMs: number;
  updatedAtMs: number;
  /** When the newest applied event happened, by its sender's clock. Unix ms. */
  eventTimeMs?: number | undefined;
};

export type Intent = Pick<Connection, 'desiredState' | 'wsUrl' | 'source' | 'generation' | 'status'> & {
  eventTimeMs?: number | undefined;
};

export const pkOf = (id: string): string => `CONN#${id}`;
export const idOf = (pk: string): string => pk.slice('CONN#'.length);

/** The parts of the index `by_desired_state`. FAILED ones are apart, so that no orphan scan has to step over them. */
export const buckets = ['STARTED', 'STOPPED', 'FAILED'] as const;
export type Bucket = (typeof buckets)[number];

export function bucketOf(connection: Pick<Connection, 'desiredState' | 'status'>): Bucket {
  return connection.desiredState === 'STARTED' && connection.status === 'FAILED' ? 'FAILED' : connection.desiredState;
}

/** One index key takes 1,000 writes a second, so each bucket is spread over `shards` of them. */
export function shardKey(bucket: Bucket, pk: string, shards: number): string {
  const hash = createHash('sha256').update(pk).digest().readUInt32BE(0);
  return `${bucket}#${hash % shards}`;
}

/** Wanted: a worker should own it. */
export function isWanted(connection: Pick<Connection, 'desiredState' | 'status'>): boolean {
  return bucketOf(connection) === 'STARTED';
}

/** Wanted, and no lease on it runs: whoever comes first may have it. */
export function isOrphan(
  connection: Pick<Connection, 'desiredState' | 'status' | 'leaseExpiresAtMs'>,
  nowMs: number,
): boolean {
  return isWanted(connection) && connection.leaseExpiresAtMs <= nowMs;
}

export type Decision =
  | { outcome: 'changed'; intent: Intent }
  /** It already is as the event says. Only the time of the newest event moves on, where the event carries a newer one. */
  | { outcome: 'unchanged'; noteEventTimeMs?: number }
  /** A newer event has been applied; this one came late. */
  | { outcome: 'stale'; newestEventTimeMs: number }
  /** STOP for an id that was never started. */
  | { outcome: 'unknown' };

export function decideStart(
  current: Connection | undefined,
  wanted: { wsUrl: string; source: SourceChoice; eventTimeMs?: number | undefined },
): Decision {
  const { wsUrl, source, eventTimeMs } = wanted;
  const intent = { desiredState: 'STARTED', wsUrl, source, status: 'PENDING', eventTimeMs } as const;
  if (!current) return { outcome: 'changed', intent: { ...intent, generation: 1 } };
  const stale = staleness(current, eventTimeMs);
  if (stale) return stale;
  const same = isWanted(current) && current.wsUrl === wsUrl && sameSource(current.source, source);
  if (same) return unchanged(current, eventTimeMs);
  return { outcome: 'changed', intent: { ...intent, generation: current.generation + 1 } };
}

export function decideStop(current: Connection | undefined, event: { eventTimeMs?: number | undefined }): Decision {
  if (!current) return { outcome: 'unknown' };
  const stale = staleness(current, event.eventTimeMs);
  if (stale) return stale;
  if (current.desiredState === 'STOPPED') return unchanged(current, event.eventTimeMs);
  const { wsUrl, source, generation } = current;
  // An owner sets CLOSED when it has let go; without one there is nothing to let go.
  const status = current.leaseOwner === undefined ? 'CLOSED' : current.status;
  return {
    outcome: 'changed',
    intent: { desiredState: 'STOPPED', wsUrl, source, generation, status, eventTimeMs: event.eventTimeMs },
  };
}

function staleness(current: Connection, eventTimeMs: number | undefined): Decision | undefined {
  if (eventTimeMs === undefined || current.eventTimeMs === undefined || eventTimeMs >= current.eventTimeMs)
    return undefined;
  return { outcome: 'stale', newestEventTimeMs: current.eventTimeMs };
}

function unchanged(current: Connection, eventTimeMs: number | undefined): Decision {
  const newer = eventTimeMs !== undefined && eventTimeMs > (current.eventTimeMs ?? 0);
  return newer ? { outcome: 'unchanged', noteEventTimeMs: eventTimeMs } : { outcome: 'unchanged' };
}

/** Key order doesn't matter: DynamoDB doesn't keep it. */
function sameSource(a: SourceChoice, b: SourceChoice): boolean {
  return canonical(a) === canonical(b);
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    inner && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
