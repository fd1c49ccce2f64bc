/** `.local/state.json`: where everything is, for whoever wants to talk to the running local system. It is there only while all is up. */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { TableNames } from './aws.ts';

export interface LocalState {
  /** `null` without the functions. */
  apiUrl: string | null;
  apiKey: string;
  /** Where the functions can be invoked as at AWS; `null` without them. */
  lambdaUrl: string | null;
  /** The configuration's variables, as the workers have them. */
  settings: Record<string, string>;
  dynamodbUrl: string;
  sqsUrl: string;
  queueUrl: string;
  tables: TableNames;
  /** `null` with `--no-source`. */
  sourceUrl: string | null;
  workers: { id: string; pid: number }[];
}

export class StateFile {
  readonly #file: string;
  #last: Promise<void> = Promise.resolve();
  #removed = false;

  constructor(file: string) {
    this.#file = file;
  }

  /** Atomic: a reader sees the old state or the new one. Writes happen one after another. */
  write(state: LocalState): Promise<void> {
    const text = `${JSON.stringify(state, null, 2)}\n`;
    this.#last = this.#last.then(async () => {
      if (this.#removed) return;
      const temporary = `${this.#file}.${process.pid}`;
      await mkdir(dirname(this.#file), { recursive: true });
      await writeFile(temporary, text);
      await rename(temporary, this.#file);
    });
    return this.#last;
  }

  async remove(): Promise<void> {
    this.#removed = true;
    await this.#last;
    await rm(this.#file, { force: true });
  }
}
