// What one source file says, as a flat list of facts that architecture rules can be written over.
import { parse } from '@babel/parser';

/**
 * - `import`: a module's name, however it is imported (types, re-exports and `import()` too)
 * - `uses`: a dotted path as the program means it: `process.env`, `setTimeout`, `@aws-sdk/client-sqs#SQSClient`
 * - `new`: such a path and the number of arguments: `Date/0`
 * - `name`: any identifier or string, wherever it stands
 */
export type Fact = { line: number; kind: Kind; text: string };
type Kind = 'import' | 'uses' | 'new' | 'name' | 'default-export' | 'enum' | 'any' | 'empty-catch';

type SyntaxNode = { type: string; loc: { start: { line: number } }; [field: string]: unknown };
/** Local name -> what it stands for. */
type Imports = Map<string, string>;

export function factsOf(source: string): Fact[] {
  const { program } = parse(source, { sourceType: 'module', plugins: ['typescript', 'explicitResourceManagement'] });
  const facts: Fact[] = [];
  const imports: Imports = new Map();
  const visit = (node: SyntaxNode, parent?: SyntaxNode, field = ''): void => {
    for (const [kind, text] of factsAt(node, parent, field, imports))
      facts.push({ line: node.loc.start.line, kind, text });
    for (const [name, value] of Object.entries(node)) {
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, node, name);
    }
  };
  visit(program as unknown as SyntaxNode);
  return facts;
}

function* factsAt(
  node: SyntaxNode,
  parent: SyntaxNode | undefined,
  field: string,
  imports: Imports,
): Generator<[Kind, string]> {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
    case 'TSImportType':
      if (isNode(node['source'] ?? node['argument'])) yield ['import', textOf(node['source'] ?? node['argument'])];
      for (const specifier of nodesIn(node['specifiers'])) {
        if (textOf(specifier['exported']) === 'default') yield ['default-export', 'default'];
        if (node.type !== 'ImportDeclaration') continue;
        const meaning = meaningOf(textOf(node['source']), importedName(specifier));
        imports.set(textOf(specifier['local']), meaning);
        yield ['uses', meaning];
      }
      return;
    case 'ImportExpression':
    case 'CallExpression': {
      const callee = node['callee'];
      const [first] = nodesIn(node['arguments']);
      const path = isNode(callee) ? pathOf(callee, imports) : undefined;
      if (first && (path === 'require' || (isNode(callee) && callee.type === 'Import')))
        yield ['import', textOf(first)];
      if (first && isNode(callee) && textOf(callee['property']) === 'catch' && isEmptyBlock(first['body']))
        yield ['empty-catch', ''];
      return;
    }
    case 'NewExpression':
      yield ['new', `${pathOf(node['callee'], imports) ?? ''}/${nodesIn(node['arguments']).length}`];
      return;
    case 'VariableDeclarator': // const { env } = process
      if (isNode(node['id']) && node['id'].type === 'ObjectPattern') {
        const from = pathOf(node['init'], imports);
        for (const property of nodesIn(node['id']['properties']))
          if (from) yield ['uses', `${from}.${textOf(property['key'])}`];
      }
      return;
    case 'StringLiteral':
      yield ['name', textOf(node)];
      return;
    case 'Identifier':
      yield ['name', textOf(node)];
      if (isReference(parent, field)) yield ['uses', pathOf(node, imports) ?? ''];
      return;
    case 'MemberExpression':
    case 'OptionalMemberExpression': {
      const path = pathOf(node, imports);
      if (path) yield ['uses', path];
      return;
    }
    case 'CatchClause':
      if (isEmptyBlock(node['body'])) yield ['empty-catch', ''];
      return;
    case 'ExportDefaultDeclaration':
      yield ['default-export', 'default'];
      return;
    case 'TSEnumDeclaration':
      yield ['enum', textOf(node['id'])];
      return;
    case 'TSAnyKeyword':
      yield ['any', 'any'];
  }
}

const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string' && 'loc' in value;

const nodesIn = (value: unknown): SyntaxNode[] => (Array.isArray(value) ? value.filter(isNode) : []);

/** An identifier's name or a string's value. */
function textOf(node: unknown): string {
  if (!isNode(node)) return '';
  const text = node['name'] ?? node['value'];
  return typeof text === 'string' ? text : '';
}

const importedName = (specifier: SyntaxNode): string =>
  specifier.type === 'ImportNamespaceSpecifier' ? '*' : textOf(specifier['imported']) || 'default';

/** Node's modules that stand for globals get the global's name, so that a rule needs to know only that one. */
function meaningOf(module: string, name: string): string {
  const isWhole = name === '*' || name === 'default';
  if (/^(node:)?process$/.test(module)) return isWhole ? 'process' : `process.${name}`;
  if (/^(node:)?perf_hooks$/.test(module) && !isWhole) return name;
  return `${module}#${name}`;
}

function pathOf(node: unknown, imports: Imports): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === 'Identifier') return imports.get(textOf(node)) ?? textOf(node);
  if (!node.type.endsWith('MemberExpression')) return undefined;
  const isNamed = node['computed'] !== true || (isNode(node['property']) && node['property'].type === 'StringLiteral');
  const from = pathOf(node['object'], imports);
  if (!isNamed || from === undefined) return undefined;
  return `${from}.${textOf(node['property'])}`.replace(/^(globalThis|global)\./, '');
}

/** Whether an identifier names a value, not a member, a key or a type. */
function isReference(parent: SyntaxNode | undefined, field: string): boolean {
  if (!parent) return false;
  if ((field === 'key' || field === 'property') && parent['computed'] !== true) return false;
  if (parent.type.startsWith('TS')) return field === 'expression';
  return !parent.type.endsWith('Specifier');
}

/** A comment inside counts: it says why there is nothing to do. */
const isEmptyBlock = (node: unknown): boolean =>
  isNode(node) && node.type === 'BlockStatement' && nodesIn(node['body']).length === 0 && !node['innerComments'];
