/**
 * The only place that knows what time it is, so that a test or a simulation can be that place instead.
 * `setTimeout` and `Date` are used nowhere else in what is deployed.
 */
export type Clock = {
  /** Wall clock, Unix milliseconds. Other machines' clocks differ from it: never judge your own lease by it. */
  now(): number;
  /** Milliseconds that only ever go forward. Not comparable between processes. Goes on while the process is stopped. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when `signal` aborts. It never rejects: look at the signal afterwards. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `fn` once, after `ms`, unless cancelled. A pending timer doesn't keep the process alive on its own. */
  timer(ms: number, fn: () => void): Timer;
};

export type Timer = { cancel(): void };

/** Node fires a longer timer at once; a wait that long is a mistake here anyway, so it is cut. */
const longestTimerMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep(ms, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(handle);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const handle = setTimeout(done, Math.min(ms, longestTimerMs));
      signal?.addEventListener('abort', done);
    });
  },
  timer(ms, fn) {
    const handle = setTimeout(fn, Math.min(ms, longestTimerMs));
    handle.unref();
    return { cancel: () => clearTimeout(handle) };
  },
};
