import type { Config } from '../../shared/config.ts';
import { createSink } from '../../worker/sink.ts';
import { FakeMessages } from './messages-table.ts';
import { settled, VirtualClock } from './virtual-clock.ts';
import { countedMetrics, keptLog } from './worker-parts.ts';

/** A sink over a table that the test answers for. */
export function sinkOver({ bufferBytes = 64_000_000 }: Partial<Config['sink']> = {}) {
  const messages = new FakeMessages();
  const clock = new VirtualClock();
  const metrics = countedMetrics();
  const log = keptLog();
  const { signal } = new AbortController();
  const sink = createSink({ messages, clock, random: () => 0.5, log, metrics, bufferBytes, signal });
  const open = (given: { pk?: string; position?: string; mayWrite?: () => boolean } = {}) =>
    sink.open({
      pk: given.pk ?? 'CONN#a',
      workerId: 'w-me',
      epoch: 7,
      position: given.position,
      mayWrite: given.mayWrite ?? (() => true),
    });
  return {
    messages,
    clock,
    metrics,
    log,
    open,
    /** The next request, once the sink has had the time to send it. */
    sent: async () => {
      await clock.advance(2_000);
      const call = messages.calls[0];
      if (!call) throw new Error('the sink has sent nothing');
      return call;
    },
    /** Answers until nothing is left to be stored. */
    storeAll: async () => {
      for (let idle = 0; idle < 2; ) {
        const call = messages.calls[0];
        if (call) {
          call.answer();
          await settled();
          idle = 0;
        } else {
          await clock.advance(2_000);
          idle++;
        }
      }
    },
  };
}

/** A frame of a source that numbers them. */
export const numberedFrame = (seq: number | string, text = `{"seq":${seq}}`) => ({
  data: Buffer.from(text),
  binary: false,
  seq: String(seq),
  numbers: true,
  atMs: 1_700_000_000_000,
});

/** A frame of a source that doesn't. */
export const plainFrame = (text: string) => ({
  data: Buffer.from(text),
  binary: false,
  seq: undefined,
  numbers: false,
  atMs: 1_700_000_000_000,
});
