import type { z } from 'zod';
import { type Problem, Refusal } from './refusal.ts';

/** @throws Refusal 400 with everything that is wrong, each with its field and in words for the one who sent it */
export function check<T>(schema: z.ZodType<T>, input: unknown): T {
  const parsed = schema.safeParse(input, { error: inWords });
  if (parsed.success) return parsed.data;
  throw new Refusal(400, 'bad_request', problemsOf(parsed.error));
}

/** @param under where the checked value stands in the whole request */
export function problemsOf(error: z.ZodError, under: string[] = []): Problem[] {
  return error.issues.flatMap((issue) => {
    const path = [...under, ...issue.path.map(String)];
    if (issue.code !== 'unrecognized_keys') return [{ field: fieldOf(path), message: issue.message }];
    return issue.keys.map((key) => ({ field: fieldOf([...path, key]), message: 'is not a field that is known here' }));
  });
}

const longestField = 100;

function fieldOf(path: string[]): string | undefined {
  if (path.length === 0) return undefined;
  const field = path.join('.');
  return field.length > longestField ? `${field.slice(0, longestField)}…` : field;
}

/** What zod would say is for programmers. A schema's own message goes before this one. */
export function inWords(issue: z.core.$ZodRawIssue): string | undefined {
  const top = (issue.path ?? []).length === 0;
  if (issue.code === 'invalid_type') {
    const kind = issue.expected === 'object' || issue.expected === 'record' ? 'an object' : `a ${issue.expected}`;
    if (issue.input === undefined) return top ? `there must be ${kind}` : 'is missing';
    return `${top ? 'it ' : ''}must be ${kind}, not ${kindOf(issue.input)}`;
  }
  if (issue.code === 'too_big') return `must be ${issue.maximum} at most`;
  if (issue.code === 'too_small') return `must be ${issue.minimum} at least`;
  return undefined;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
