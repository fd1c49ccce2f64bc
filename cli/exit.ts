/** What a script learns without reading the output. */
export const exitCodes = {
  fine: 0,
  /** It couldn't be looked at, or couldn't be done. */
  error: 1,
  usage: 2,
  /** Something that is wanted isn't held, and time alone won't help. */
  trouble: 3,
  /** All that can be held is; some connections were given up, since their sources refused them for good. */
  failed: 4,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export const exitCodesInWords = `
Exit codes
  0  fine
  1  it couldn't be looked at, or couldn't be done
  2  wrong usage
  3  something that is wanted isn't held, and time alone won't help: an orphan that is older than a lease and a
     sweep, a full fleet, a broken item, a worker that is silent; after drain: something wasn't handed over
  4  connections were given up, since their sources refused them for good; nothing else is wrong`;

/** An error for the person at the terminal: what is wrong, and what to do about it. */
export class CliError extends Error {
  readonly fix: string | undefined;

  constructor(message: string, fix?: string) {
    super(message);
    this.name = 'CliError';
    this.fix = fix;
  }
}
