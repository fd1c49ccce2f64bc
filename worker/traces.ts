import { randomBytes } from 'node:crypto';
import { PutTraceSegmentsCommand, type XRayClient } from '@aws-sdk/client-xray';
import type { Clock } from '../shared/clock.ts';
import { describe } from '../shared/errors.ts';
import type { Log } from '../shared/log.ts';
import type { Metrics } from '../shared/metrics.ts';
import { readTraceHeader } from '../shared/trace.ts';

/** What of a trace may be searched for. */
export type Annotations = Record<string, string | number>;

/** One wake-up's way through this worker: a segment in the trace of whoever sent it. */
export type Trace = {
  annotate(annotations: Annotations): void;
  /**
   * Begins a part of it, which may end later than the whole: it is sent by itself.
   * @returns what ends that part; with a fault, when it went wrong. Only the first call counts
   */
  step(name: string): EndStep;
  /** The wake-up is settled. To be called once. */
  end(): void;
};

export type EndStep = (fault?: string) => void;

export type Traces = {
  /** @param header as it came with the wake-up. @returns undefined when nobody follows this one */
  begin: (header: string | undefined) => Trace | undefined;
  /** Sends what has ended, every so often until the signal aborts, and once more then. */
  sendUntil: (signal: AbortSignal) => Promise<void>;
};

/** Sends segments, each a JSON text. @returns how many of them were not taken */
export type SendSegments = (segments: string[]) => Promise<number>;

type Parts = { name: string; send: SendSegments; clock: Clock; log: Log; metrics: Metrics };

const everyMs = 2000;
/** They are under a kilobyte each, so that stays far from the limits of a request. */
const inARequest = 50;
/** What isn't sent by then is dropped: traces must not cost a worker its memory. */
const mostWaiting = 500;

export function toXRay(client: XRayClient): SendSegments {
  return async (segments) => {
    const answer = await client.send(new PutTraceSegmentsCommand({ TraceSegmentDocuments: segments }));
    return answer.UnprocessedTraceSegments?.length ?? 0;
  };
}

/** Nothing here throws, waits or retries on the way of a wake-up: what can't be sent is counted and forgotten. */
export function createTraces({ name, send, clock, log, metrics }: Parts): Traces {
  let waiting: string[] = [];
  const seconds = () => clock.now() / 1000;

  function finish(segment: object): void {
    if (waiting.length >= mostWaiting) metrics.count('TracesDropped');
    else waiting.push(JSON.stringify(segment));
  }

  async function sendAll(): Promise<void> {
    const segments = waiting;
    waiting = [];
    for (let start = 0; start < segments.length; start += inARequest) {
      const batch = segments.slice(start, start + inARequest);
      try {
        const refused = await send(batch);
        if (refused > 0) metrics.count('TracesDropped', refused);
      } catch (fault) {
        // Nor are the others tried: X-Ray is away, and one timeout is enough.
        metrics.count('TracesDropped', segments.length - start);
        log.warn('traces.unsent', { segments: segments.length - start, fault: describe(fault) });
        return;
      }
    }
  }

  return {
    begin(header) {
      const context = readTraceHeader(header);
      if (!context) return undefined;
      const { traceId: trace_id, parentId: parent_id } = context;
      const segment = { name, id: newId(), trace_id, parent_id, start_time: seconds() };
      const annotations: Annotations = {};
      return {
        annotate: (more) => void Object.assign(annotations, more),
        step(stepName) {
          const part = { type: 'subsegment', name: stepName, id: newId(), trace_id, parent_id: segment.id };
          const start_time = seconds();
          let over = false;
          return (fault) => {
            if (over) return;
            over = true;
            const cause = { exceptions: [{ id: newId(), message: fault }] };
            finish({
              ...part,
              start_time,
              end_time: seconds(),
              ...(fault === undefined ? {} : { fault: true, cause }),
            });
          };
        },
        end: () => finish({ ...segment, end_time: seconds(), annotations }),
      };
    },
    async sendUntil(signal) {
      while (!signal.aborted) {
        await clock.sleep(everyMs, signal);
        await sendAll();
      }
    },
  };
}

const newId = (): string => randomBytes(8).toString('hex');
