/** What is tried at scale, and under which assumptions. */
import type { Latencies } from '../world/clients.ts';

export type Size = { connections: number; workers: number };

/** `perTable`: write units a second that each table and each index takes; undefined: it was warmed for anything. */
export type Disaster = Size & {
  name: string;
  env: Record<string, string>;
  reported: boolean;
  perTable: number | undefined;
};

export type Assumptions = Latencies & {
  /** From the dial to the open socket. */
  connectMs: number;
  /** How long an index stays behind its table. */
  indexLagMs: number;
  /** How old the number of waiting wake-ups is that SQS tells. */
  depthLagMs: number;
  /** Reports of tasks that ended together reach Lambda spread over this. */
  reportsWithinMs: number;
  /** Before Lambda runs the code for one of them: nobody keeps containers warm for a disaster. */
  coldStartMs: number;
};

/**
 * A third of the workers goes, and what is left has to have room for all: 1,050 a worker are 700 and half of that. At the
 * default of 700 the last 30,000 would wait for the tasks that replace the dead ones.
 */
const roomForMany = { MAX_CONNECTIONS: '1050' };

const large: Size = { connections: 100_000, workers: 150 };
/** At the default capacity, and with room for what a third of the workers leaves. */
const middle: Size = { connections: 10_000, workers: 24 };

/** Every claim that one key can't take is tried again and again: with more than this, it takes the bench too long. */
const saturated: Size = { connections: 30_000, workers: 45 };

/** Of an on-demand table that never had more to do, and of each of its indexes. Source: bench/world/capacity.ts. */
const newTable = 4000;

export function plan(quick: boolean): Disaster[] {
  const big = quick ? { connections: 5000, workers: 9 } : large;
  const disaster = (size: Size, name: string, more: Partial<Disaster> = {}): Disaster => ({
    ...size,
    name,
    reported: true,
    perTable: undefined,
    ...more,
    env: { ...(size === middle ? {} : roomForMany), ...more.env },
  });
  return [
    disaster(middle, 'reported'),
    disaster(middle, 'not reported', { reported: false }),
    disaster(big, 'reported'),
    disaster(big, 'not reported', { reported: false }),
    disaster(big, 'reported, SHARDS=64', { env: { SHARDS: '64' } }),
    disaster(big, 'reported, tables as new', { perTable: newTable }),
    disaster(quick ? big : saturated, 'reported, SHARDS=1', { env: { SHARDS: '1' } }),
  ];
}
