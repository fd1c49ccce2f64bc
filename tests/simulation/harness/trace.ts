/**
 * What happened, in order. Its hash covers every note, so two runs with the same hash went the same way. The text of the
 * notes is made and kept only when somebody wants to read it.
 */
export class Trace {
  readonly reading: boolean;
  readonly lines: string[] = [];
  #hash = 0x811c9dc5;

  constructor(reading: boolean) {
    this.reading = reading;
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, '0');
  }

  note(atMs: number, what: string, detail?: () => string): void {
    this.#mix(atMs);
    for (let index = 0; index < what.length; index += 3) this.#mix(what.charCodeAt(index));
    if (!this.reading) return;
    const text = detail ? ` ${detail()}` : '';
    this.lines.push(`${(atMs / 1000).toFixed(3).padStart(9)} ${what}${text}`);
  }

  #mix(value: number): void {
    this.#hash = Math.imul(this.#hash ^ value, 0x01000193);
    this.#hash ^= this.#hash >>> 15;
  }
}
