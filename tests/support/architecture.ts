// The rules of the layout, as a checker over one file at a time. `architecture.test.ts` runs it over the product.
import { posix } from 'node:path';
import { type Fact, factsOf } from './syntax.ts';

export type Violation = { file: string; line: number; rule: string; advice: string };

type Rule = {
  name: string;
  advice: string;
  /** Files, and folders ending in `/`, where the thing is allowed. */
  only?: readonly string[];
  breaks: (fact: Fact, file: string) => boolean;
};

const MAX_LINES = 260;

/** Which folders each product folder may import. Folders that aren't listed (tests, local, …) are out of reach for all. */
const REACHABLE = new Map([
  ['functions', ['functions', 'shared', 'sources']],
  ['worker', ['worker', 'shared', 'sources']],
  ['sources', ['sources', 'shared']],
  ['shared', ['shared']],
  // For people with AWS credentials: it reads what everybody reads, and belongs to neither side.
  ['cli', ['cli', 'shared', 'sources']],
]);
export const PRODUCT_FOLDERS: readonly string[] = [...REACHABLE.keys()];

const AWS_CLIENT = /^@aws-sdk\/client-[^#]+#(\*\.)?\w+(?<!Command|Exception|Error)\//;
const CLOCK =
  /^(setTimeout|setInterval|setImmediate|Date\.now|performance\.now|process\.(hrtime|uptime)|AbortSignal\.timeout)$/;
const EXPRESSION = /^(Condition|Update|KeyCondition|Filter|Projection)Expression$/;

const RULES: readonly Rule[] = [
  {
    name: 'layers',
    advice:
      'import only along functions → shared ← worker, sources → shared, functions and worker → sources, cli → shared',
    breaks: ({ kind, text }, file) =>
      kind === 'import' &&
      text.startsWith('.') &&
      !REACHABLE.get(folderOf(file))?.includes(folderOf(resolve(file, text))),
  },
  {
    name: 'ws',
    advice: 'only worker/socket.ts knows the library ws: go through it',
    only: ['worker/socket.ts'],
    breaks: ({ kind, text }) => kind === 'import' && /^ws(\/|$)/.test(text),
  },
  {
    name: 'middy',
    advice: 'middy belongs to functions/',
    only: ['functions/'],
    breaks: ({ kind, text }) => kind === 'import' && text.startsWith('@middy/'),
  },
  {
    name: 'aws-clients',
    advice: 'build AWS clients in an entry point and pass them in',
    only: [
      'worker/main.ts',
      'functions/events.ts',
      'functions/status.ts',
      'functions/reconcile.ts',
      'shared/aws.ts',
      'cli/clients.ts',
    ],
    breaks: ({ kind, text }) => kind === 'new' && AWS_CLIENT.test(text),
  },
  {
    name: 'environment',
    advice: 'read the environment in shared/config.ts and pass the value in',
    only: ['shared/config.ts'],
    breaks: ({ kind, text }) => kind === 'uses' && text === 'process.env',
  },
  {
    name: 'clock',
    advice: 'take time and timers from shared/clock.ts, so that tests can move them by hand',
    only: ['shared/clock.ts'],
    breaks: ({ kind, text }) =>
      (kind === 'uses' && CLOCK.test(text)) ||
      (kind === 'new' && text === 'Date/0') ||
      (kind === 'import' && /^(node:)?timers(\/|$)/.test(text)),
  },
  {
    name: 'dynamodb-expressions',
    advice: 'write DynamoDB expressions in shared/tables/, behind a function with a name',
    only: ['shared/tables/'],
    breaks: ({ kind, text }) => kind === 'name' && EXPRESSION.test(text),
  },
  { name: 'default-export', advice: 'export it by name', breaks: ({ kind }) => kind === 'default-export' },
  { name: 'enum', advice: 'use a union of string literals', breaks: ({ kind }) => kind === 'enum' },
  { name: 'any', advice: 'use unknown, and narrow it', breaks: ({ kind }) => kind === 'any' },
  {
    name: 'empty-catch',
    advice: 'handle the error, or say in a comment inside the block why there is nothing to do',
    breaks: ({ kind }) => kind === 'empty-catch',
  },
];

/** All violations in one file. `file` is its path from the repository's root, with `/` as separator. */
export function violationsIn(file: string, source: string): Violation[] {
  const rules = RULES.filter(
    ({ only }) => !only?.some((place) => file === place || (place.endsWith('/') && file.startsWith(place))),
  );
  const found = factsOf(source).flatMap((fact) =>
    rules
      .filter(({ breaks }) => breaks(fact, file))
      .map(({ name, advice }) => ({ file, line: fact.line, rule: name, advice })),
  );
  const lines = source.trimEnd().split('\n').length;
  if (lines > MAX_LINES) {
    found.push({
      file,
      line: lines,
      rule: 'length',
      advice: `keep it under ${MAX_LINES} lines: split it by reason to change`,
    });
  }
  return found;
}

export const describeViolation = ({ file, line, rule, advice }: Violation): string =>
  `${file}:${line} [${rule}] ${advice}`;

const folderOf = (path: string): string => path.split('/')[0] ?? '';
const resolve = (file: string, target: string): string => posix.join(posix.dirname(file), target);
