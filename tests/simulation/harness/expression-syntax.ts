/**
 * DynamoDB's expression language, as far as shared/tables speaks it. Anything else is an error, never a guess.
 * A text is parsed once; names and values are looked up when it is evaluated.
 */
export type Operand =
  | { kind: 'attribute'; name: string }
  | { kind: 'value'; name: string }
  | { kind: 'sum'; sign: 1 | -1; left: Operand; right: Operand }
  | { kind: 'if_not_exists'; attribute: string; otherwise: Operand };

export type Comparator = '=' | '<>' | '<' | '<=' | '>' | '>=';

export type Condition =
  | { kind: 'and' | 'or'; left: Condition; right: Condition }
  | { kind: 'not'; of: Condition }
  | { kind: 'exists'; attribute: string; wanted: boolean }
  | { kind: 'begins_with'; attribute: string; prefix: Operand }
  | { kind: 'compare'; by: Comparator; left: Operand; right: Operand }
  | { kind: 'between'; of: Operand; least: Operand; most: Operand }
  | { kind: 'in'; of: Operand; list: Operand[] };

export type UpdatePlan = {
  set: { attribute: string; to: Operand }[];
  remove: string[];
  add: { attribute: string; by: Operand }[];
};

const token = /\s*([#:]?[A-Za-z_][A-Za-z0-9_]*|<=|>=|<>|[=<>(),+-])/y;

export class Syntax {
  readonly #text: string;
  readonly #tokens: string[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    token.lastIndex = 0;
    let end = 0;
    for (let match = token.exec(text); match; match = token.exec(text)) {
      this.#tokens.push(match[1] as string);
      end = token.lastIndex;
    }
    if (text.slice(end).trim() !== '') throw this.#unknown();
  }

  condition(): Condition {
    const parsed = this.#or();
    this.#end();
    return parsed;
  }

  update(): UpdatePlan {
    const plan: UpdatePlan = { set: [], remove: [], add: [] };
    while (this.#at < this.#tokens.length) {
      const section = this.#take().toUpperCase();
      do {
        const attribute = this.#take();
        if (section === 'SET') {
          this.#expect('=');
          plan.set.push({ attribute, to: this.#operand() });
        } else if (section === 'REMOVE') plan.remove.push(attribute);
        else if (section === 'ADD') plan.add.push({ attribute, by: this.#operand() });
        else throw this.#unknown();
      } while (this.#skip(','));
    }
    return plan;
  }

  /** `a, #b, c` */
  projection(): string[] {
    const names = [this.#take()];
    while (this.#skip(',')) names.push(this.#take());
    this.#end();
    return names;
  }

  #or(): Condition {
    let left = this.#and();
    while (this.#skip('OR')) left = { kind: 'or', left, right: this.#and() };
    return left;
  }

  #and(): Condition {
    let left = this.#not();
    while (this.#skip('AND')) left = { kind: 'and', left, right: this.#not() };
    return left;
  }

  #not(): Condition {
    if (this.#skip('NOT')) return { kind: 'not', of: this.#not() };
    if (this.#skip('(')) {
      const inner = this.#or();
      this.#expect(')');
      return inner;
    }
    const calls = this.#tokens[this.#at + 1] === '(';
    if (calls && this.#peek() !== 'if_not_exists') return this.#test();
    return this.#comparison();
  }

  #test(): Condition {
    const name = this.#take();
    this.#expect('(');
    const attribute = this.#take();
    const prefix = name === 'begins_with' && this.#skip(',') ? this.#operand() : undefined;
    this.#expect(')');
    if (name === 'attribute_exists') return { kind: 'exists', attribute, wanted: true };
    if (name === 'attribute_not_exists') return { kind: 'exists', attribute, wanted: false };
    if (name === 'begins_with' && prefix) return { kind: 'begins_with', attribute, prefix };
    throw this.#unknown();
  }

  #comparison(): Condition {
    const left = this.#operand();
    if (this.#skip('BETWEEN')) {
      const least = this.#operand();
      this.#expect('AND');
      return { kind: 'between', of: left, least, most: this.#operand() };
    }
    if (this.#skip('IN')) {
      this.#expect('(');
      const list = [this.#operand()];
      while (this.#skip(',')) list.push(this.#operand());
      this.#expect(')');
      return { kind: 'in', of: left, list };
    }
    const by = this.#take();
    if (!isComparator(by)) throw this.#unknown();
    return { kind: 'compare', by, left, right: this.#operand() };
  }

  #operand(): Operand {
    const left = this.#single();
    if (this.#skip('+')) return { kind: 'sum', sign: 1, left, right: this.#single() };
    if (this.#skip('-')) return { kind: 'sum', sign: -1, left, right: this.#single() };
    return left;
  }

  #single(): Operand {
    const name = this.#take();
    if (name === 'if_not_exists') {
      this.#expect('(');
      const attribute = this.#take();
      this.#expect(',');
      const otherwise = this.#operand();
      this.#expect(')');
      return { kind: 'if_not_exists', attribute, otherwise };
    }
    if (!/^[#:A-Za-z_]/.test(name) || this.#peek() === '(') throw this.#unknown();
    return name.startsWith(':') ? { kind: 'value', name } : { kind: 'attribute', name };
  }

  #peek(): string | undefined {
    return this.#tokens[this.#at];
  }

  #take(): string {
    const taken = this.#tokens[this.#at++];
    if (taken === undefined) throw this.#unknown();
    return taken;
  }

  #skip(word: string): boolean {
    if (this.#peek()?.toUpperCase() !== word) return false;
    this.#at++;
    return true;
  }

  #expect(word: string): void {
    if (!this.#skip(word)) throw this.#unknown();
  }

  #end(): void {
    if (this.#at < this.#tokens.length) throw this.#unknown();
  }

  #unknown(): Error {
    return new Error(`the simulated store can't read: ${this.#text}`);
  }
}

function isComparator(text: string): text is Comparator {
  return ['=', '<>', '<', '<=', '>', '>='].includes(text);
}
