import { variantNamed } from '../variants.ts';
import { workerLeaseOf } from './seeds.ts';
import { type Outcome, simulate } from './simulation.ts';

export type Chunk = { from: number; seeds: number; variant: string | undefined; workerLease: boolean | undefined };

export type ChunkDone = {
  seeds: number;
  virtualMs: number;
  messages: number;
  longestSettledMs: number;
  faults: Record<string, number>;
  broken: Outcome | undefined;
};

/** A process of its own, which simulates what its parent sends. See `runSeeds`. */
async function runChunk({ from, seeds, variant, workerLease }: Chunk): Promise<ChunkDone> {
  const done: ChunkDone = { seeds: 0, virtualMs: 0, messages: 0, longestSettledMs: 0, faults: {}, broken: undefined };
  for (let seed = from; seed < from + seeds && !done.broken; seed++) {
    const outcome = await simulate({
      seed,
      trace: false,
      variant: variant === undefined ? undefined : variantNamed(variant),
      workerLease: workerLease ?? workerLeaseOf(seed),
    });
    done.seeds++;
    done.virtualMs += outcome.virtualMs;
    done.messages += outcome.messages;
    done.longestSettledMs = Math.max(done.longestSettledMs, outcome.settledMs);
    for (const [name, count] of Object.entries(outcome.faults)) done.faults[name] = (done.faults[name] ?? 0) + count;
    if (outcome.violation) done.broken = outcome;
  }
  return done;
}

process.on('message', (chunk) => void answer(chunk as Chunk));

async function answer(chunk: Chunk): Promise<void> {
  try {
    process.send?.(await runChunk(chunk));
  } catch (fault) {
    console.error(fault);
    process.exit(1);
  }
}
