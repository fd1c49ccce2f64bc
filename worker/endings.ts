import type { Connection } from '../shared/connection.ts';
import type { ReleaseWith, StatusChange } from '../shared/tables/leases.ts';
import type { Loss } from './lease.ts';

/**
 * Why a holding ended. The first reason counts.
 * - stopped    nobody wants it any more
 * - drained    this worker goes; another shall go on
 * - lost       the lease is gone, and with it the right to write anything
 * - failed     the source said no for good
 * - exhausted  too many failures here: another worker shall try, not before `waitMs` has passed
 */
export type Ending =
  | { why: 'stopped' }
  | { why: 'drained' }
  | { why: 'lost'; loss: Loss }
  | { why: 'failed'; reason: string; attempts: number }
  | { why: 'exhausted'; reason: string; attempts: number; waitMs: number };

/**
 * What each ending leaves in the item.
 * @returns undefined for a lost lease: then nothing may be written
 */
export function releaseFor(
  ending: Ending,
  now: { status: StatusChange; generation: number; nowMs: number },
): Omit<ReleaseWith, 'lastSeq'> | undefined {
  const { attempts } = now.status;
  switch (ending.why) {
    case 'lost':
      return undefined;
    case 'stopped':
      return { status: { status: 'CLOSED', attempts: 0 } };
    case 'drained':
      return { status: { status: 'PENDING', attempts } };
    case 'failed':
      return {
        status: { status: 'FAILED', reason: ending.reason, attempts: ending.attempts },
        failedGeneration: now.generation,
      };
    case 'exhausted':
      return {
        status: { status: 'RETRYING', reason: ending.reason, attempts: ending.attempts },
        notBeforeMs: now.nowMs + ending.waitMs,
      };
  }
}

/** Whether somebody should look at the connection at once, now that it is free. */
export function wakesUp(ending: Ending, after: Connection | undefined): boolean {
  if (after === undefined) return ending.why === 'drained' || ending.why === 'stopped';
  // A START may have come after the STOP that ended this holding, or after the source's final no.
  return after.desiredState === 'STARTED' && after.status !== 'FAILED' && ending.why !== 'exhausted';
}
