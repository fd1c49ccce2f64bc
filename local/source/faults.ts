/** What a source can be told to do wrong, for one connection or for all. Read from outside, so it is checked. */
import { z } from 'zod';

export const faultsSchema = z.strictObject({
  /** Closes each socket so long after it was opened; 0 is at once. */
  closeAfterOpenMs: z.number().min(0).nullable().optional(),
  /** The close code for `closeAfterOpenMs`; without one the TCP connection is just cut. */
  closeCode: z.int().min(1000).max(4999).nullable().optional(),
  /** The HTTP status that refuses the handshake. */
  refuseStatus: z.int().min(200).max(599).nullable().optional(),
  retryAfterSeconds: z.number().min(0).nullable().optional(),
  /** Accepts the TCP connection and never answers the handshake. */
  neverAccept: z.boolean().nullable().optional(),
  /** Half-open: sends nothing more and answers no ping. */
  silent: z.boolean().nullable().optional(),
  /** Sends its messages as binary frames. */
  binary: z.boolean().nullable().optional(),
  /** Messages per second and connection, from now on. */
  rate: z.number().min(0).max(10_000).nullable().optional(),
});

export const controlSchema = z.strictObject({
  ...faultsSchema.shape,
  /** One connection; without it, all that there are and will be. */
  id: z.string().optional(),
  /** Cuts the open sockets now. */
  dropAll: z.boolean().optional(),
  /** Forgets what was counted. */
  reset: z.boolean().optional(),
});

export type Faults = z.infer<typeof faultsSchema>;
export type Control = z.infer<typeof controlSchema>;

/** `null` takes a fault back, leaving one out keeps it as it is. */
export function mergeFaults(faults: Faults, control: Control): Faults {
  const changes = Object.entries(control).filter(([name]) => name in faultsSchema.shape);
  return faultsSchema.parse({ ...faults, ...Object.fromEntries(changes) });
}
