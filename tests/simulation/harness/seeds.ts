import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Chunk, ChunkDone } from './child.ts';
import type { Outcome } from './simulation.ts';

export type SeedsOptions = {
  from: number;
  seeds: number;
  variant?: string | undefined;
  /** undefined: by the seed, see `workerLeaseOf`. */
  workerLease?: boolean | undefined;
  onProgress?: (total: Total) => void;
  signal?: AbortSignal;
};

export type Total = {
  seeds: number;
  virtualMs: number;
  messages: number;
  longestSettledMs: number;
  faults: Record<string, number>;
  /** Of the first seed, in their order, that was found to break an invariant. */
  broken: Outcome | undefined;
};

const chunkSize = 10;

/** Most seeds run under the worker lease, which is the default; the others as the published design does. */
export const workerLeaseOf = (seed: number): boolean => seed % 4 !== 0;

/** Runs the seeds on all cores, until they are through or one of them breaks an invariant. Afterwards: `endProcesses`. */
export async function runSeeds(options: SeedsOptions): Promise<Total> {
  const { from, seeds, variant, workerLease, onProgress, signal } = options;
  const total: Total = { seeds: 0, virtualMs: 0, messages: 0, longestSettledMs: 0, faults: {}, broken: undefined };
  let next = from;
  const chunk = (): Chunk | undefined => {
    if (next >= from + seeds || total.broken || signal?.aborted) return undefined;
    const first = next;
    next = Math.min(first + chunkSize, from + seeds);
    return { from: first, seeds: next - first, variant, workerLease };
  };
  const processes = Math.min(availableParallelism(), Math.ceil(seeds / chunkSize));
  const children = Array.from({ length: processes }, () =>
    runChild(chunk, (done) => {
      add(total, done);
      onProgress?.(total);
    }),
  );
  await Promise.all(children);
  return total;
}

/** Processes that have nothing to do: to start one takes as long as some thirty seeds. */
const idle: ChildProcess[] = [];

/** Ends the processes that earlier runs have left for later ones. */
export async function endProcesses(): Promise<void> {
  const ends = idle.splice(0).map((child) => {
    const ended = once(child, 'exit');
    child.disconnect();
    return ended;
  });
  await Promise.all(ends);
}

/** One process that takes chunks as long as there are any. */
function runChild(nextChunk: () => Chunk | undefined, onDone: (done: ChunkDone) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const child =
      idle.pop() ??
      fork(join(import.meta.dirname, 'child.ts'), { execArgv: ['--disable-warning=ExperimentalWarning'] });
    const give = () => {
      const chunk = nextChunk();
      if (chunk) return child.send(chunk);
      child.removeAllListeners();
      idle.push(child);
      return resolve();
    };
    child.on('message', (done) => {
      onDone(done as ChunkDone);
      give();
    });
    child.on('error', reject);
    child.on('exit', (code, signal) => reject(new Error(`a process of the simulation ended with ${signal ?? code}`)));
    give();
  });
}

function add(total: Total, { seeds, virtualMs, messages, longestSettledMs, faults, broken }: ChunkDone): void {
  total.seeds += seeds;
  total.virtualMs += virtualMs;
  total.messages += messages;
  total.longestSettledMs = Math.max(total.longestSettledMs, longestSettledMs);
  for (const [name, count] of Object.entries(faults)) total.faults[name] = (total.faults[name] ?? 0) + count;
  if (broken && (!total.broken || broken.seed < total.broken.seed)) total.broken = broken;
}
