import { z } from 'zod';
import type { Verdict } from '../shared/source.ts';

/** What any profile lets START say about its source's codes. */
export const verdictParameters = z.strictObject({
  /** Close codes after which dialling again is useless. */
  final_close_codes: z.array(z.number().int().min(1000).max(4999)).max(100).optional(),
  /** HTTP statuses of a refused handshake after which dialling again is useless. */
  final_http_statuses: z.array(z.number().int().min(300).max(599)).max(100).optional(),
});

/** Wrong request, no right to it, or nothing there: dialling again gives the same answer. */
const finalStatuses = [400, 401, 403, 404, 405, 410];
const pauseStatuses = [429, 503];

export function closeVerdict(code: number, parameters: Record<string, unknown>): Verdict {
  return verdictParameters.parse(parameters).final_close_codes?.includes(code) ? 'final' : 'retry';
}

export function refusalVerdict(httpStatus: number, parameters: Record<string, unknown>): Verdict {
  const final = verdictParameters.parse(parameters).final_http_statuses ?? finalStatuses;
  if (final.includes(httpStatus)) return 'final';
  return pauseStatuses.includes(httpStatus) ? 'pause' : 'retry';
}
