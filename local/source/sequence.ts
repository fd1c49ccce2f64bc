/**
 * The numbers of one connection's messages, as a pure function of time: number 1 at the first dial, then `rate` per second, whether
 * anybody is connected or not. So what a failover lost can be counted, and the same number always has the same content.
 */

interface Segment {
  /** The first number of this segment, and when it was due. */
  fromSeq: number;
  fromMs: number;
  ratePerSecond: number;
}

/** Changes of the rate that are remembered; older numbers then get the time of the oldest one. */
const MAX_SEGMENTS = 64;

export class Sequence {
  readonly #segments: Segment[];

  constructor(startMs: number, ratePerSecond: number) {
    this.#segments = [{ fromSeq: 1, fromMs: startMs, ratePerSecond }];
  }

  get #last(): Segment {
    const last = this.#segments.at(-1);
    if (last === undefined) throw new Error('unreachable: a sequence has at least one segment');
    return last;
  }

  get ratePerSecond(): number {
    return this.#last.ratePerSecond;
  }

  /** The highest number that is due at `nowMs`; 0 when none is yet. */
  highestAt(nowMs: number): number {
    const { fromSeq, fromMs, ratePerSecond } = this.#last;
    if (ratePerSecond === 0 || nowMs < fromMs) return fromSeq - 1;
    return fromSeq + Math.floor(((nowMs - fromMs) * ratePerSecond) / 1000);
  }

  /** When `seq` is due; `null` when it never will be at the present rate. */
  dueAtMs(seq: number): number | null {
    const segment = this.#segments.findLast((candidate) => candidate.fromSeq <= seq) ?? this.#segments[0];
    if (segment === undefined || segment.ratePerSecond === 0) return null;
    return segment.fromMs + Math.ceil(((seq - segment.fromSeq) * 1000) / segment.ratePerSecond);
  }

  /** From now on at another rate; what was numbered so far keeps its time. */
  setRate(nowMs: number, ratePerSecond: number): void {
    if (ratePerSecond === this.ratePerSecond) return;
    const next = this.highestAt(nowMs) + 1;
    const last = this.#last;
    if (last.fromSeq === next) {
      last.fromMs = nowMs;
      last.ratePerSecond = ratePerSecond;
      return;
    }
    const fromMs = ratePerSecond === 0 ? nowMs : nowMs + 1000 / ratePerSecond;
    this.#segments.push({ fromSeq: next, fromMs, ratePerSecond });
    if (this.#segments.length > MAX_SEGMENTS) this.#segments.shift();
  }
}
