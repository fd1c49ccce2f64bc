/** The two settings that are compared, and what is asked of each. */

export type Setting = {
  name: 'published' | 'two-level';
  /** The configuration's variables that aren't as by default. */
  env: Record<string, string>;
  /** From when all are open until things repeat themselves. */
  settleMs: number;
  /** What is counted. A whole number of every rhythm that there is. */
  windowMs: number;
};

const minute = 60_000;

export const settings: Setting[] = [
  {
    name: 'published',
    // Nothing here comes less often than once a minute, so two of them are as good as an hour.
    env: { WORKER_LEASE: 'off', LEASE_SECONDS: '20', HEARTBEAT_EVERY: '5', RECONCILE_EVERY: '60', SWEEP_EVERY: '60' },
    settleMs: minute / 2,
    windowMs: 2 * minute,
  },
  {
    name: 'two-level',
    env: {},
    // The first renewal of a connection's lease comes after ten to twenty minutes, each further one after twenty.
    settleMs: 21 * minute,
    windowMs: 60 * minute,
  },
];

export type Load = 'idle' | 'messages';

/** Messages come for this part of what is counted; what they cost is counted for all of it. */
export const messagesMs = minute;
export const message = { everyMs: 1000, bytes: 500 };

export const perWorker = 700;

export type Size = { connections: number; workers: number };

export const sizes: Size[] = [100, 500, 2000, 10_000].map((connections) => ({
  connections,
  workers: Math.ceil(connections / perWorker),
}));

/** As many workers as 10,000 connections have, and next to no connections: shows which reads grow with which. */
export const fewOnMany: Size = { connections: 100, workers: sizes.at(-1)?.workers ?? 1 };

/** What the published article says that its design costs a month, on demand. */
export const articleDollars = new Map([
  [100, 65],
  [500, 325],
  [2000, 1300],
]);
