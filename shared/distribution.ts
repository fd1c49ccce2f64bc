/** What has been observed, as CloudWatch takes it: each value, and how often it came. */
export type Spread = { values: number[]; counts: number[] };

/** PutMetricData takes no more different values of one metric. Source: API reference, `MetricDatum.Values`. */
export const mostValues = 150;

/** Neighbouring values differ by this factor, so what is published is off by 5 % at most. */
const growth = 1.1;
/** Anything smaller counts as nothing. */
const smallest = 0.001;

/**
 * Counts values so that percentiles can be drawn from them, in a space that doesn't grow: values are rounded to steps that
 * grow by a tenth, and past 150 different ones each goes to the nearest that is there.
 */
export class Distribution {
  /** By the step that a value is rounded to. */
  readonly #counts = new Map<number, number>();

  add(value: number, times = 1): void {
    const step = this.#room(stepOf(value));
    this.#counts.set(step, (this.#counts.get(step) ?? 0) + times);
  }

  addAll({ values, counts }: Spread): void {
    values.forEach((value, index) => this.add(value, counts[index] ?? 1));
  }

  spread(): Spread {
    const sorted = [...this.#counts].sort(([a], [b]) => a - b);
    return { values: sorted.map(([step]) => valueOf(step)), counts: sorted.map(([, count]) => count) };
  }

  #room(step: number): number {
    if (this.#counts.has(step) || this.#counts.size < mostValues) return step;
    return [...this.#counts.keys()].reduce((nearest, known) =>
      Math.abs(known - step) < Math.abs(nearest - step) ? known : nearest,
    );
  }
}

/** For a log line, where nobody can draw. */
export function summaryOf({ values, counts }: Spread) {
  const count = counts.reduce((sum, times) => sum + times, 0);
  return { count, p50: quantile(0.5), p99: quantile(0.99), max: values.at(-1) ?? 0 };

  function quantile(share: number): number {
    let left = Math.ceil(count * share);
    return values.find((_value, index) => (left -= counts[index] ?? 0) <= 0) ?? 0;
  }
}

const nothing = -1;
const offset = Math.log(smallest) / Math.log(growth);

function stepOf(value: number): number {
  return value < smallest ? nothing : Math.round(Math.log(value) / Math.log(growth) - offset);
}

function valueOf(step: number): number {
  return step === nothing ? 0 : Number((smallest * growth ** step).toPrecision(3));
}
