import type { Clock } from './clock.ts';

type Entry<T> = { item: T; resolve(): void; reject(fault: unknown): void };

/**
 * Collects single items for a moment and sends them together, as many as one request takes.
 * The promise of each item settles with the outcome of that item.
 * @param send resolves to the faults by index in the batch: an item without one went through. A rejection fails them all.
 */
export function createBatcher<T>(
  options: { clock: Clock; size: number; lingerMs: number },
  send: (items: T[]) => Promise<Map<number, Error>>,
): (item: T) => Promise<void> {
  const waiting: Entry<T>[] = [];
  let armed = false;

  async function flush(): Promise<void> {
    armed = false;
    const batch = waiting.splice(0, options.size);
    if (waiting.length > 0) arm(0);
    if (batch.length === 0) return;
    try {
      const faults = await send(batch.map(({ item }) => item));
      batch.forEach((entry, index) => {
        const fault = faults.get(index);
        if (fault) entry.reject(fault);
        else entry.resolve();
      });
    } catch (fault) {
      for (const entry of batch) entry.reject(fault);
    }
  }

  function arm(ms: number): void {
    if (armed) return;
    armed = true;
    // Somebody waits for it, so it keeps the process alive, which a timer of the clock doesn't.
    void options.clock.sleep(ms).then(flush);
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (waiting.length >= options.size) void flush();
      else arm(options.lingerMs);
    });
}
