/** All that was asked of AWS, by whom, and what it would be charged as. */
import type { Use } from './store.ts';

export type Who = 'worker' | 'reconciler' | 'setup';

export type Line = {
  who: Who;
  /** `UpdateItem`, `ReceiveMessage`, … */
  operation: string;
  /** The table or index, `sqs` or `cloudwatch`. */
  target: string;
  requests: number;
  refused: number;
  writeUnits: number;
  readUnits: number;
};

export class Ledger {
  /** Milliseconds that Lambda would bill. */
  lambdaMs = 0;
  invocations = 0;
  readonly metricNames = new Set<string>();
  #lines = new Map<string, Line>();

  get lines(): Line[] {
    return [...this.#lines.values()];
  }

  /** What came before doesn't count. */
  clear(): void {
    this.#lines = new Map();
    this.metricNames.clear();
    this.lambdaMs = 0;
    this.invocations = 0;
  }

  /** The first use is that of the table that was asked; those of its indexes follow. */
  store(who: Who, operation: string, uses: Use[], refused: boolean): void {
    uses.forEach(({ target, write, read }, place) => {
      const line = this.#line(who, operation, target);
      // A batch has a use for each item, but is one request.
      if (place === 0) line.requests++;
      if (place === 0 && refused) line.refused++;
      line.writeUnits += write;
      line.readUnits += read;
    });
  }

  request(who: Who, operation: string, target: 'sqs' | 'cloudwatch'): void {
    this.#line(who, operation, target).requests++;
  }

  sum(of: 'requests' | 'refused' | 'writeUnits' | 'readUnits', where: (line: Line) => boolean = () => true): number {
    return this.lines.filter(where).reduce((sum, line) => sum + line[of], 0);
  }

  #line(who: Who, operation: string, target: string): Line {
    const key = `${who} ${operation} ${target}`;
    const line = this.#lines.get(key) ?? {
      who,
      operation,
      target,
      requests: 0,
      refused: 0,
      writeUnits: 0,
      readUnits: 0,
    };
    this.#lines.set(key, line);
    return line;
  }
}
