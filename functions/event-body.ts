import { z } from 'zod';
import { problemWithUrl } from '../shared/address.ts';
import type { SourceChoice } from '../shared/connection.ts';
import { defaultSource, profileOf, sourceNames } from '../sources/index.ts';
import { check, inWords, problemsOf } from './check.ts';
import { type Problem, Refusal } from './refusal.ts';

export type StartEvent = {
  type: 'START';
  id: string;
  wsUrl: string;
  source: SourceChoice;
  eventTimeMs: number | undefined;
};

export type StopEvent = { type: 'STOP'; id: string; eventTimeMs: number | undefined };

/** An event from further ahead would block every later one until its time has come. */
const mostAheadMs = 300_000;
const year2000Ms = 946_684_800_000;

export const connectionId = z
  .string()
  .regex(/^[\x21-\x7e]{1,256}$/, 'must be 1 to 256 printable ASCII characters without spaces');

const unixMs = z
  .number()
  .int('must be whole milliseconds')
  .min(year2000Ms, 'must be Unix milliseconds, and not seconds');

const isoTime = z.iso
  .datetime({
    offset: true,
    error: 'must be a time like 2030-01-31T12:00:00Z, with Z or an offset, or Unix milliseconds as a number',
  })
  .transform((text) => Date.parse(text));

/** Two schemas behind one field, chosen by the type: a union would answer with the problems of both. */
const eventTime = z.unknown().transform((value, context): number => {
  const parsed = (typeof value === 'number' ? unixMs : isoTime).safeParse(value, { error: inWords });
  if (parsed.success) return parsed.data;
  context.addIssue({ code: 'custom', message: parsed.error.issues[0]?.message ?? 'is no time' });
  return z.NEVER;
});

const wsUrl = z
  .string()
  .max(2048, 'must be 2048 characters at most')
  // `URL` would silently leave out a line break, and something else would be dialled than what was sent.
  .regex(/^[\x21-\x7e\u{a1}-\u{10ffff}]*$/u, 'must not have spaces or control characters');

const source = z.strictObject({ name: z.string(), parameters: z.record(z.string(), z.unknown()).optional() });

const body = z.discriminatedUnion(
  'event_type',
  [
    z.strictObject({
      event_type: z.literal('START'),
      connection_id: connectionId,
      ws_url: wsUrl,
      source: source.default({ name: defaultSource }),
      event_time: eventTime.optional(),
    }),
    // URL and source say nothing here. They are taken, so that a sender may send the same again with only the type changed.
    z.strictObject({
      event_type: z.literal('STOP'),
      connection_id: connectionId,
      ws_url: z.string().optional(),
      source: z.unknown().optional(),
      event_time: eventTime.optional(),
    }),
  ],
  { error: (issue) => (issue.code === 'invalid_union' ? 'must be START or STOP' : undefined) },
);

/** @throws Refusal 400 with everything that is wrong with it */
export function readEvent(input: unknown, allowedHosts: string[], nowMs: number): StartEvent | StopEvent {
  const sent = check(body, input);
  const problems: Problem[] = [];
  const eventTimeMs = sent.event_time;
  if (eventTimeMs !== undefined && eventTimeMs > nowMs + mostAheadMs) {
    problems.push({ field: 'event_time', message: 'is more than five minutes ahead of the clock here' });
  }
  const id = sent.connection_id;
  if (sent.event_type === 'STOP') {
    if (problems.length > 0) throw new Refusal(400, 'bad_request', problems);
    return { type: 'STOP', id, eventTimeMs };
  }
  const wrongUrl = problemWithUrl(sent.ws_url, allowedHosts);
  if (wrongUrl !== undefined) problems.push({ field: 'ws_url', message: wrongUrl });
  const chosen = chooseSource(sent.source, sent.ws_url);
  if (Array.isArray(chosen)) problems.push(...chosen);
  if (problems.length > 0 || Array.isArray(chosen)) throw new Refusal(400, 'bad_request', problems);
  return { type: 'START', id, wsUrl: sent.ws_url, source: chosen, eventTimeMs };
}

/** @returns what to store, the same for whatever means the same; or what is wrong */
function chooseSource({ name, parameters }: z.infer<typeof source>, url: string): SourceChoice | Problem[] {
  const profile = profileOf(name);
  if (!profile) return [{ field: 'source.name', message: `must be one of: ${sourceNames.join(', ')}` }];
  const parsed = profile.parameters.safeParse(parameters ?? {}, { error: inWords });
  if (!parsed.success) return problemsOf(parsed.error, ['source', 'parameters']);
  const wrongUrl = profile.problemWith(url);
  if (wrongUrl !== undefined) return [{ field: 'ws_url', message: wrongUrl }];
  return Object.keys(parsed.data).length === 0 ? { name } : { name, parameters: parsed.data };
}
