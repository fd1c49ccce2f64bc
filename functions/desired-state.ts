import { fullJitterMs } from '../shared/backoff.ts';
import type { Clock } from '../shared/clock.ts';
import {
  type Connection,
  type Decision,
  decideStart,
  decideStop,
  type Intent,
  idOf,
  isOrphan,
  pkOf,
} from '../shared/connection.ts';
import { describe } from '../shared/errors.ts';
import type { Log } from '../shared/log.ts';
import type { Metrics } from '../shared/metrics.ts';
import type { Queue } from '../shared/queue.ts';
import type { ConnectionsTable } from '../shared/tables/connections.ts';
import { readEvent, type StartEvent, type StopEvent } from './event-body.ts';
import type { Call, Reply } from './http.ts';
import { Refusal } from './refusal.ts';

export type DesiredStateParts = {
  connections: Pick<ConnectionsTable, 'get' | 'want' | 'noteEventTime'>;
  queue: Pick<Queue, 'send'>;
  clock: Clock;
  metrics: Metrics;
  /** in [0, 1) */
  random: () => number;
  allowedHosts: string[];
  /** How long an answer waits for the queue. */
  wakeUpWithinMs: number;
};

/** How often an event is decided anew because somebody else wrote in between. Each round at least one writer gets through. */
const mostTries = 10;
const retry = { baseMs: 20, capMs: 200 };

type Applied = {
  changed: boolean;
  now: Pick<Connection, 'desiredState' | 'status' | 'generation' | 'leaseExpiresAtMs'>;
  /** Of the last acquisition; null: it was never there before. */
  epoch: number | null;
};

/** POST /events: writes what is wanted, then gives a hint that there is something to claim. */
export function changeDesiredState(parts: DesiredStateParts): (call: Call) => Promise<Reply> {
  const { connections, queue, clock, metrics } = parts;

  async function apply(event: StartEvent | StopEvent): Promise<Applied> {
    const pk = pkOf(event.id);
    for (let tries = 1; tries <= mostTries; tries++) {
      const seen = await connections.get(pk);
      const decision = event.type === 'START' ? decideStart(seen, event) : decideStop(seen, event);
      const applied = await write(pk, decision, seen);
      if (applied !== 'refused') return applied;
      await clock.sleep(fullJitterMs(retry, tries, parts.random()));
    }
    throw new Refusal(
      503,
      'busy',
      'others keep changing this connection, and the event was not applied: send it again',
    );
  }

  async function write(pk: string, decision: Decision, seen: Connection | undefined): Promise<Applied | 'refused'> {
    if (decision.outcome === 'stale') throw stale(decision.newestEventTimeMs);
    const epoch = seen?.leaseEpoch ?? null;
    if (decision.outcome === 'changed') {
      const written = await connections.want(pk, decision.intent, seen, clock.now());
      return written === 'refused' ? written : { changed: true, now: afterWrite(decision.intent, seen), epoch };
    }
    // Only what exists can stay as it is, or be STOPPED.
    if (decision.outcome === 'unknown' || !seen) {
      throw new Refusal(404, 'unknown_connection', 'no such connection was ever started', { connection_id: idOf(pk) });
    }
    if (decision.noteEventTimeMs !== undefined) {
      const noted = await connections.noteEventTime(pk, decision.noteEventTimeMs, seen);
      if (noted === 'refused') return noted;
    }
    return { changed: false, now: seen, epoch };
  }

  /**
   * Also for a START that changes nothing, as long as nobody owns the connection: it may be the repetition of one whose
   * wake-up failed. What is wanted is written by now, so a failure here is no failure of the event, and must not take
   * the time in which the sender waits for the answer: the reconciler finds the connection at its next sweep.
   */
  async function wakeUp(about: { connection: string; epoch: number | null }, log: Log): Promise<void> {
    const waiting = new AbortController();
    const sent = queue.send({ pk: about.connection }).then(() => undefined, describe);
    const overdue = clock.sleep(parts.wakeUpWithinMs, waiting.signal).then(() => 'no answer in time');
    const fault = await Promise.race([sent, overdue]);
    waiting.abort();
    if (fault === undefined) return;
    log.warn('wakeup.unsent', { ...about, fault });
    metrics.count('QueueFaults');
    await metrics.publish();
  }

  return async ({ body, log }) => {
    const event = readEvent(body, parts.allowedHosts, clock.now());
    const { changed, now, epoch } = await apply(event);
    const about = { connection: pkOf(event.id), epoch };
    log.info('event.applied', { ...about, type: event.type, changed, generation: now.generation });
    if (event.type === 'START' && isOrphan(now, clock.now())) await wakeUp(about, log);
    return {
      status: changed ? 202 : 200,
      body: {
        connection_id: event.id,
        desired_state: now.desiredState,
        generation: now.generation,
        changed,
        status: now.status,
        see: `/connections/${encodeURIComponent(event.id)}`,
      },
    };
  };
}

/** The lease of an owner stays. Without one, `want` makes the connection free at once. */
function afterWrite(intent: Intent, seen: Connection | undefined): Applied['now'] {
  return { ...intent, leaseExpiresAtMs: seen?.leaseOwner === undefined ? 0 : seen.leaseExpiresAtMs };
}

function stale(newestEventTimeMs: number): Refusal {
  const newest = new Date(newestEventTimeMs).toISOString();
  const message = `is older than the newest event that was applied, of ${newest}; nothing was changed`;
  return new Refusal(409, 'stale_event', [{ field: 'event_time', message }], { newest_event_time: newest });
}
