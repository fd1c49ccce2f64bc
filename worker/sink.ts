import pLimit from 'p-limit';
import { fullJitterMs } from '../shared/backoff.ts';
import type { Clock, Timer } from '../shared/clock.ts';
import { describe, isInvalidRequest } from '../shared/errors.ts';
import type { Log } from '../shared/log.ts';
import type { Metrics } from '../shared/metrics.ts';
import { batchSize, type MessagesTable } from '../shared/tables/messages.ts';
import { type Entry, Lane, type LaneOptions, type LaneOwner } from './lane.ts';

/** A batch that isn't full waits this long for more: fuller batches cost less of the processor. */
const lingerMs = 50;
const writersAtOnce = 8;
const retry = { baseMs: 50, capMs: 1000 };

export type Sink = {
  open(options: LaneOptions): Lane;
};

type SinkOptions = {
  messages: MessagesTable;
  clock: Clock;
  random: () => number;
  log: Log;
  metrics: Metrics;
  bufferBytes: number;
  signal: AbortSignal;
};

/**
 * Writes the messages of all connections to the table, in batches across connections. What is full pushes back: each
 * lane and the sink as a whole have a limit in bytes, and a lane that is full tells its socket to pause.
 */
export function createSink({ messages, clock, random, log, metrics, bufferBytes, signal }: SinkOptions): Sink {
  const writer = pLimit(writersAtOnce);
  const lanes = new Set<Lane>();
  let filling: Entry[] = [];
  let linger: Timer | undefined;
  let bytes = 0;
  let wasFull = false;

  function flush(): void {
    linger?.cancel();
    linger = undefined;
    if (filling.length === 0) return;
    const batch = filling;
    filling = [];
    void write(batch).catch((fault: unknown) => {
      // A mistake of ours. What is in it can't be counted as stored, so its connections can't go on.
      log.error('sink.failed', { messages: batch.length, fault: describe(fault) });
      for (const { lane } of batch) lane.fail(fault);
    });
  }

  const owner: LaneOwner = {
    submit(entry) {
      filling.push(entry);
      if (filling.length >= batchSize) flush();
      else linger ??= clock.timer(lingerMs, flush);
    },
    weigh(more) {
      bytes += more;
      if (bytes >= bufferBytes) wasFull = true;
      else if (wasFull && bytes < bufferBytes / 2) {
        wasFull = false;
        for (const lane of lanes) lane.resumeIfRoom();
      }
    },
    full: () => wasFull,
    flushSoon: flush,
    closed(lane, dropped) {
      lanes.delete(lane);
      if (dropped === 0) return;
      metrics.count('MessagesDiscarded', dropped);
      log.info('messages.discarded', { connection: lane.options.pk, epoch: lane.options.epoch, messages: dropped });
    },
  };

  /** Until each is stored or its lane may write no more. */
  async function write(batch: Entry[]): Promise<void> {
    let left = batch;
    for (let failures = 0; ; failures++) {
      const before = left.length;
      left = await writer(async () => {
        // A batch may have waited long: in the queue, for a retry, or because the process was frozen.
        const allowed = left.filter((entry) => entry.lane.mayWrite());
        return allowed.length === 0 ? [] : attempt(allowed);
      });
      if (left.length === 0) return;
      if (left.length < before) failures = 0;
      metrics.count('SinkRetries');
      // Not in a writer's place: what one connection's messages wait for must not keep those of others.
      await clock.sleep(retry.baseMs + fullJitterMs(retry, failures + 1, random()), signal);
    }
  }

  /** @returns those that have to be tried again */
  async function attempt(entries: Entry[]): Promise<Entry[]> {
    let left: Set<Entry['message']>;
    try {
      left = new Set(
        await messages.store(
          entries.map((entry) => entry.message),
          () => entries.every((entry) => entry.lane.mayWrite()),
          signal,
        ),
      );
    } catch (fault) {
      if (isInvalidRequest(fault)) return oneByOne(entries, fault);
      log.warn('messages.unanswered', { messages: entries.length, fault: describe(fault) });
      return entries;
    }
    const done = entries.filter((entry) => !left.has(entry.message));
    const now = clock.now();
    for (const entry of done) {
      entry.lane.stored(entry);
      metrics.observe('StoreLagMs', now - entry.message.timestampMs);
    }
    metrics.count('MessagesStored', done.length);
    return entries.filter((entry) => left.has(entry.message));
  }

  /** One message that the table can't take must not hold up those of other connections. */
  async function oneByOne(entries: Entry[], fault: unknown): Promise<Entry[]> {
    const [only] = entries;
    if (entries.length === 1 && only) {
      const { pk: connection, epoch, sk: key } = only.message;
      log.error('message.refused', { connection, epoch, key, fault: describe(fault) });
      only.lane.fail(fault);
      return [];
    }
    const left: Entry[] = [];
    for (const entry of entries.filter(({ lane }) => lane.mayWrite())) left.push(...(await attempt([entry])));
    return left;
  }

  return {
    open(options) {
      const lane = new Lane(owner, options);
      lanes.add(lane);
      return lane;
    },
  };
}
