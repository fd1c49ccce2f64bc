import { z } from 'zod';
import { parseJson } from './json.ts';

/**
 * "Look at this connection." Only a hint: duplicates, losses and disorder are harmless, and what it says of the connection
 * may be out of date, so it is believed only as far as the tables confirm it.
 */
export const wakeUpSchema = z.object({
  pk: z.string().startsWith('CONN#'),
  /** Who owned it, in which epoch, and is said to be dead. Saves whoever follows the hint a refused write and a read. */
  after: z.object({ owner: z.string(), epoch: z.number() }).optional(),
});

export type WakeUp = z.infer<typeof wakeUpSchema>;

export function encodeWakeUp(wakeUp: WakeUp): string {
  return JSON.stringify({ pk: wakeUp.pk, after: wakeUp.after });
}

/** @returns undefined when the text isn't a wake-up */
export function decodeWakeUp(text: string): WakeUp | undefined {
  return wakeUpSchema.safeParse(parseJson(text)).data;
}
