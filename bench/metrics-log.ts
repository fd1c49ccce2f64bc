/** What a worker publishes, read from its log, with the processor's time at each publication. */
import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSeconds } from './machine.ts';

export interface Sample {
  atMs: number;
  cpuSeconds: number;
  /** Since the sample before. */
  counts: Record<string, number>;
}

const LOOK_EVERY_MS = 20;

/** Waits for the worker's next publication, again and again. Ask it to publish every second: `METRICS_EVERY`. */
export async function* publications(worker: { logFile: string; pid: number | null }): AsyncGenerator<Sample> {
  const file = await open(worker.logFile);
  try {
    let position = (await file.stat()).size;
    let rest = '';
    for (;;) {
      const { bytesRead, buffer } = await file.read({ position, buffer: Buffer.alloc(65_536) });
      position += bytesRead;
      const lines = (rest + buffer.toString('utf8', 0, bytesRead)).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines.filter((text) => text.includes('"metrics.published"'))) {
        if (worker.pid === null) throw new Error('the worker is gone');
        const counts = JSON.parse(line) as Record<string, number>;
        yield { atMs: Date.now(), cpuSeconds: await cpuSeconds(worker.pid), counts };
      }
      if (bytesRead === 0) await sleep(LOOK_EVERY_MS);
    }
  } finally {
    await file.close();
  }
}

export interface Window {
  seconds: number;
  cpuSeconds: number;
  counts: Record<string, number>;
}

/** From one publication to the first that is at least `forMs` later. */
export async function over(worker: { logFile: string; pid: number | null }, forMs: number): Promise<Window> {
  let first: Sample | null = null;
  const counts: Record<string, number> = {};
  for await (const sample of publications(worker)) {
    if (first === null) {
      first = sample;
      continue;
    }
    for (const [name, value] of Object.entries(sample.counts)) {
      if (typeof value === 'number') counts[name] = (counts[name] ?? 0) + value;
    }
    const elapsedMs = sample.atMs - first.atMs;
    if (elapsedMs >= forMs) {
      return { seconds: elapsedMs / 1000, cpuSeconds: sample.cpuSeconds - first.cpuSeconds, counts };
    }
  }
  throw new Error('unreachable: publications never end');
}
