import { counterKey, isLater, partKey, type Seq, seqKey, unnumberedKey } from '../shared/sequence.ts';
import type { Message } from '../shared/tables/messages.ts';
import { splitFrame } from './frames.ts';

/**
 * How much of one connection may be on its way to the table at once. Recovery reads at least this much back to find
 * where the stored messages are complete (`completeUpTo`), so the two belong together: one query page is a megabyte.
 */
export const window = { entries: 250, bytes: 500_000 };

/** A connection that has this much waiting pauses its socket. */
const laneBytes = 1_000_000;
/** What an item weighs beside its data. */
const overheadBytes = 200;

export type Entry = { lane: Lane; message: Message; bytes: number; seq: Seq | undefined; stored: boolean };

export type LaneOptions = {
  pk: string;
  workerId: string;
  epoch: number;
  /** The position to go on from. */
  position: Seq | undefined;
  /** Whether this worker may still write for the connection. Asked right before every write. */
  mayWrite: () => boolean;
};

/** What a lane needs of the sink that it belongs to. */
export type LaneOwner = {
  submit(entry: Entry): void;
  /** Bytes that came (positive) or went (negative). */
  weigh(bytes: number): void;
  full(): boolean;
  flushSoon(): void;
  /** @param dropped messages that were received and won't be stored by this worker */
  closed(lane: Lane, dropped: number): void;
};

/**
 * One connection's messages on their way to the table, in order. It knows up to where all of them are stored; that is
 * the position, and it never passes a message that isn't.
 */
export class Lane {
  readonly options: LaneOptions;
  /** Called when a full lane has room again. */
  onRoom: () => void = () => {};
  /** Called once when the table won't ever take one of the messages. */
  onFailure: (fault: unknown) => void = () => {};
  /** The newest number received, stored or not: where to resume on the same lane. */
  received: Seq | undefined;
  /** All up to here is stored. */
  position: Seq | undefined;
  readonly #owner: LaneOwner;
  /** Submitted, in order; the head is the oldest that isn't stored. */
  #underway: Entry[] = [];
  #underwayBytes = 0;
  /** Received, not submitted yet: the window is full. */
  #backlog: Entry[] = [];
  #bytes = 0;
  #counter = 0;
  #lastKey: string | undefined;
  #paused = false;
  #closed = false;
  #flushed: (() => void)[] = [];

  constructor(owner: LaneOwner, options: LaneOptions) {
    this.#owner = owner;
    this.options = options;
    this.received = options.position;
    this.position = options.position;
    this.#lastKey = options.position === undefined ? undefined : seqKey(options.position);
  }

  /**
   * @param seq the source's own number; `numbers` says that the source has such numbers at all
   * @returns 'repeated' when this number was received before; the frame is then not stored again
   */
  push(frame: {
    data: Buffer;
    binary: boolean;
    seq: Seq | undefined;
    numbers: boolean;
    atMs: number;
  }): 'taken' | 'repeated' {
    const { seq, atMs } = frame;
    if (this.#closed) return 'taken';
    if (seq !== undefined && !isLater(seq, this.received)) return 'repeated';
    const key = this.#keyOf(frame);
    if (seq !== undefined) this.received = seq;
    const parts = splitFrame(frame.data, frame.binary);
    parts.forEach((data, part) => {
      const sk = partKey(key, part);
      const { pk, workerId, epoch } = this.options;
      const message = {
        pk,
        sk,
        prev: this.#lastKey,
        data,
        binary: frame.binary,
        part,
        parts: parts.length,
        timestampMs: atMs,
        workerId,
        epoch,
      };
      this.#lastKey = sk;
      const last = part === parts.length - 1;
      this.#add({
        lane: this,
        message,
        bytes: Buffer.byteLength(data) + overheadBytes,
        seq: last ? seq : undefined,
        stored: false,
      });
    });
    return 'taken';
  }

  /** Whether the socket should be paused; `onRoom` is called when it may go on. */
  full(): boolean {
    if (this.#bytes >= laneBytes || this.#owner.full()) this.#paused = true;
    return this.#paused;
  }

  mayWrite(): boolean {
    return !this.#closed && this.options.mayWrite();
  }

  stored(entry: Entry): void {
    entry.stored = true;
    this.#weigh(-entry.bytes);
    while (this.#underway[0]?.stored) {
      const done = this.#underway.shift();
      this.#underwayBytes -= done?.bytes ?? 0;
      if (done?.seq !== undefined) this.position = done.seq;
    }
    this.#submitBacklog();
    this.#settleFlushes();
    this.resumeIfRoom();
  }

  /** The table won't ever take this message: the connection can't go on as if nothing were missing. */
  fail(fault: unknown): void {
    if (this.#closed) return;
    this.close();
    this.onFailure(fault);
  }

  resumeIfRoom(): void {
    if (!this.#paused || this.#closed || this.#bytes > laneBytes / 2 || this.#owner.full()) return;
    this.#paused = false;
    this.onRoom();
  }

  /** Resolves when all that was pushed is stored, or the lane is closed. */
  flush(): Promise<void> {
    return new Promise((resolve) => {
      this.#flushed.push(resolve);
      this.#settleFlushes();
      this.#owner.flushSoon();
    });
  }

  /** Nothing is written from here on. What isn't stored is dropped: another worker resumes from the position. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    const left = this.#underway.filter((entry) => !entry.stored).length + this.#backlog.length;
    this.#owner.weigh(-this.#bytes);
    this.#underway = [];
    this.#backlog = [];
    this.#bytes = 0;
    this.#owner.closed(this, left);
    this.#settleFlushes();
  }

  #keyOf({ seq, numbers }: { seq: Seq | undefined; numbers: boolean }): string {
    if (seq !== undefined) return seqKey(seq);
    const counter = this.#counter++;
    return numbers
      ? unnumberedKey(this.received, this.options.epoch, counter)
      : counterKey(this.options.epoch, counter);
  }

  #add(entry: Entry): void {
    this.#weigh(entry.bytes);
    this.#backlog.push(entry);
    this.#submitBacklog();
  }

  #submitBacklog(): void {
    for (let next = this.#backlog[0]; next && this.#fits(next); next = this.#backlog[0]) {
      this.#backlog.shift();
      this.#underway.push(next);
      this.#underwayBytes += next.bytes;
      this.#owner.submit(next);
    }
  }

  #fits(entry: Entry): boolean {
    if (this.#underway.length === 0) return true;
    return this.#underway.length < window.entries && this.#underwayBytes + entry.bytes <= window.bytes;
  }

  #weigh(bytes: number): void {
    if (this.#closed) return;
    this.#bytes += bytes;
    this.#owner.weigh(bytes);
  }

  #settleFlushes(): void {
    if (!this.#closed && this.#underway.length + this.#backlog.length > 0) return;
    for (const resolve of this.#flushed.splice(0)) resolve();
  }
}
