import type { Clock } from '../shared/clock.ts';
import type { Metrics } from '../shared/metrics.ts';
import type { EndStep, Trace } from './traces.ts';

/** What is known of a connection when this worker gets it. */
export type Arrival = {
  /** Unix ms since when nobody has had it. */
  downSinceMs?: number | undefined;
  /** Of the wake-up that led to it. */
  trace?: Trace | undefined;
};

/** What is measured of a holding's way to its first open socket. */
export class Opening {
  readonly #parts: { clock: Clock; metrics: Metrics };
  readonly #trace: Trace | undefined;
  #downSinceMs: number | undefined;
  #dialled: EndStep | undefined;

  constructor(parts: { clock: Clock; metrics: Metrics }, arrival: Arrival) {
    this.#parts = parts;
    this.#downSinceMs = arrival.downSinceMs;
    this.#trace = arrival.trace;
  }

  /** The first dial begins, or waits for its turn. */
  dialling(): void {
    this.#dialled ??= this.#trace?.step('dial');
  }

  opened(): void {
    const downSinceMs = this.#downSinceMs;
    this.#downSinceMs = undefined;
    const { clock, metrics } = this.#parts;
    // Two machines' clocks: a gap that is shorter than they are apart could come out negative.
    if (downSinceMs !== undefined) metrics.observe('GapSeconds', Math.max(0, clock.now() - downSinceMs) / 1000);
    this.#dialled?.();
  }

  /** The dial went wrong, or there won't be one any more. The gap goes on until a later one is open. */
  failed(reason: string): void {
    this.#dialled?.(reason);
  }
}
