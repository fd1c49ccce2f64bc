/** One thing that is wrong with a request: where, and what to change. */
export type Problem = { field?: string | undefined; message: string };

/**
 * An answer other than success, meant for the sender: everything in it is shown. What isn't meant for them is thrown as
 * any other error, and becomes a 500 that says nothing.
 */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly problems: Problem[];
  /** More about it, beside the message. */
  readonly details: Record<string, unknown>;

  constructor(status: number, code: string, problems: string | Problem[], details: Record<string, unknown> = {}) {
    const list = typeof problems === 'string' ? [{ message: problems }] : problems;
    super(list.map(sentence).join('; '));
    this.name = 'Refusal';
    this.status = status;
    this.code = code;
    this.problems = list;
    this.details = details;
  }

  /** With one problem its field stands beside the message; with several there is a list. */
  toJSON(): Record<string, unknown> {
    const [first] = this.problems;
    const where =
      this.problems.length > 1 ? { problems: this.problems } : first?.field === undefined ? {} : { field: first.field };
    return { code: this.code, message: this.message, ...where, ...this.details };
  }
}

function sentence({ field, message }: Problem): string {
  return field === undefined ? message : `${field} ${message}`;
}
