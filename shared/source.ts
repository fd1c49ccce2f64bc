import type { z } from 'zod';
import type { Seq } from './sequence.ts';

/**
 * What follows from a close or a refused handshake. Codes have no global meaning (4004 is fatal at one source and
 * passing at another), so each profile says its own.
 * - retry  dial again, with backoff
 * - pause  the source asks for a rest: wait as long as it says, or the longest backoff
 * - final  never again before the next START
 */
export type Verdict = 'retry' | 'pause' | 'final';

/** Stands in a URL for the last message that we have. */
export const positionPlaceholder = '{last_seq}';

/** How to talk to one kind of source. Pure: no I/O, no time. */
export type SourceProfile = {
  name: string;
  /** What START may carry under `source.parameters`. */
  parameters: z.ZodType<Record<string, unknown>>;
  /** The source numbers its messages and resumes after a number that it is given. */
  resumes: boolean;
  /** @returns what is wrong with the URL for this source, in words for the one who sent START */
  problemWith(wsUrl: string): string | undefined;
  /** The URL to dial now. @param position the last message we have */
  url(wsUrl: string, position: Seq | undefined): string;
  /** The number that the source gave this frame; undefined: it has none. */
  seqOf(frame: Buffer): Seq | undefined;
  onClose(code: number, parameters: Record<string, unknown>): Verdict;
  onRefused(httpStatus: number, parameters: Record<string, unknown>): Verdict;
};
