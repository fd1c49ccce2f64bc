/** What the caller got wrong, in words that say what to change. `field` is where, when there is one place. */
export class InputError extends Error {
  readonly field: string | undefined;
  constructor(message: string, field?: string) {
    super(message);
    this.name = 'InputError';
    this.field = field;
  }
}

/** A setting that can't work. The process ends before it has touched anything. */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ConfigError';
  }
}

/** Somebody has written nonsense into an item. Only they, or whoever deletes it, can help. */
export class BrokenItemError extends Error {
  constructor(pk: string, problems: string[]) {
    super(`the item ${pk} can't be read: ${problems.join('; ')}`);
    this.name = 'BrokenItemError';
  }
}

/**
 * DynamoDB evaluated the condition and it was false: the write was *not* applied, and that is an answer.
 * Everything else that a write throws (timeout, reset, throttling, 5xx) is *no* answer: it may have been applied.
 */
export function isRefused(fault: unknown): boolean {
  return fault instanceof Error && fault.name === 'ConditionalCheckFailedException';
}

/** The request itself is wrong and will be wrong again, so trying once more is useless. */
export function isInvalidRequest(fault: unknown): boolean {
  return fault instanceof Error && fault.name === 'ValidationException';
}

/** One line about anything that was thrown, for a log field or a status. */
export function describe(fault: unknown): string {
  if (!(fault instanceof Error)) return String(fault);
  const code = 'code' in fault && typeof fault.code === 'string' ? ` (${fault.code})` : '';
  return `${fault.name}: ${fault.message}${code}`;
}
