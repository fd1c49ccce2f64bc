import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from '@babel/parser';
import { describe, expect, test } from '@jest/globals';

const ROOT = join(import.meta.dirname, '..', '..');

/** Spread into a line, they bring both fields: `logged(claim)`, and what is called `about`. */
const bothFields = /^(logged\(|about$)/;
const otherNames = ['connection_id', 'connectionId', 'pk', 'id', 'lease_epoch'];
/** Each is about one connection, whoever writes it. */
const aboutConnections =
  /^(claim|holding|lease|socket|release|renewal|status|position|message|item)\.|^(wakeup\.unsent|wakeup\.unsettled|owned\.unsettled|messages\.discarded|event\.applied)$/;
/** How many wake-ups a sweep couldn't send: about none of them in particular. */
const exempt = new Set(['functions/wake.ts wakeup.unsent']);

type SyntaxNode = { type: string; start: number; end: number; [field: string]: unknown };

/** What is wrong with the log lines in one source file. */
function problemsIn(file: string, source: string): string[] {
  const found: string[] = [];
  const text = (node: SyntaxNode): string => source.slice(node.start, node.end);
  const visit = (node: SyntaxNode): void => {
    const line = node.type === 'CallExpression' ? logLine(node, text) : undefined;
    if (line && !exempt.has(`${file} ${line.event}`))
      found.push(...judge(line).map((why) => `${file} ${line.event}: ${why}`));
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child);
    }
  };
  visit(parse(source, { sourceType: 'module', plugins: ['typescript'] }).program as unknown as SyntaxNode);
  return found;
}

function logLine(call: SyntaxNode, text: (node: SyntaxNode) => string) {
  const [event, fields] = call['arguments'] as SyntaxNode[];
  if (!/(^|\.)log\.(debug|info|warn|error)$/.test(text(call['callee'] as SyntaxNode))) return undefined;
  const properties = fields?.type === 'ObjectExpression' ? (fields['properties'] as SyntaxNode[]) : [];
  const spread = properties.flatMap((one) => (one.type === 'SpreadElement' ? text(one['argument'] as SyntaxNode) : []));
  const names = properties.flatMap((one) => (one.type === 'ObjectProperty' ? text(one['key'] as SyntaxNode) : []));
  const whole = fields && fields.type !== 'ObjectExpression' ? [text(fields)] : [];
  return { event: String(event?.['value']), names, spread: [...spread, ...whole] };
}

function judge({ event, names, spread }: { event: string; names: string[]; spread: string[] }): string[] {
  const both = spread.some((what) => bothFields.test(what));
  const wrong = names
    .filter((name) => otherNames.includes(name))
    .map((name) => `${name} is called connection or epoch`);
  const missing = ['connection', 'epoch'].filter((name) => !both && !names.includes(name));
  const needed = aboutConnections.test(event) || names.includes('connection');
  return [...wrong, ...(needed ? missing.map((name) => `no ${name}`) : [])];
}

const isNode = (value: unknown): value is SyntaxNode => typeof value === 'object' && value !== null && 'type' in value;

describe('every log line about a connection carries `connection` and `epoch`', () => {
  const files = ['worker', 'functions', 'shared'].flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: ROOT }));

  test.each(files)('%s', (file) => expect(problemsIn(file, readFileSync(join(ROOT, file), 'utf8'))).toEqual([]));

  test('the checker can fail', () => {
    const problems = (line: string) => problemsIn('worker/x.ts', line).length;
    expect(problems(`log.info('socket.opened', { ...logged(claim), reason })`)).toBe(0);
    expect(problems(`log.info('socket.opened', logged(claim))`)).toBe(0);
    expect(problems(`log.warn('claim.lost', { connection: pk, epoch: null })`)).toBe(0);
    expect(problems(`log.warn('worker.full', { held })`)).toBe(0);
    expect(problems(`context.log.info('socket.opened')`)).toBe(2);
    expect(problems(`log.info('anything.else', { connection: pk })`)).toBe(1);
    expect(problems(`log.info('socket.opened', { ...logged(claim), pk })`)).toBe(1);
    expect(problems(`log.info('anything.else', { connection_id: id })`)).toBe(1);
  });
});
