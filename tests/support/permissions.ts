/** What the code may do on AWS, by the policies of the compiled template, against what it was seen to do. */
import type { CompiledTemplate } from './deploy/compiled.ts';

/** `dynamodb:Query ConnectionsTable/index/by_owner`: an IAM action, and what it was done to, by its name in the template. */
export type Permission = `${string}:${string} ${string}`;

type Statement = { Effect: string; Action: string | string[]; Resource: unknown; Condition?: unknown };

/** @param role its name in the template */
export function granted(template: CompiledTemplate, role: string): Set<Permission> {
  const statements = statementsOf(template, role);
  return new Set(
    statements.flatMap(({ Effect, Action, Resource }) => {
      if (Effect !== 'Allow') throw new Error(`${role}: this only knows Allow`);
      const resources = (Array.isArray(Resource) ? Resource : [Resource]).map(resourceName);
      return [Action].flat().flatMap((action) => resources.map((name) => `${action} ${name}` as Permission));
    }),
  );
}

export function statementsOf(template: CompiledTemplate, role: string): Statement[] {
  const policies = (template.Resources[role]?.Properties['Policies'] ?? []) as {
    PolicyDocument: { Statement: Statement[] };
  }[];
  return policies.flatMap(({ PolicyDocument }) => PolicyDocument.Statement);
}

/** What a statement's `Resource` means, by the names of the template. */
function resourceName(resource: unknown): string {
  if (resource === '*') return '*';
  const { 'Fn::GetAtt': attribute, 'Fn::Sub': text } = resource as { 'Fn::GetAtt'?: string[]; 'Fn::Sub'?: string };
  if (attribute?.[1] === 'Arn') return attribute[0] ?? '';
  const index = /^\$\{(\w+)\.Arn\}(\/index\/\w+)$/.exec(text ?? '');
  if (index !== null) return `${index[1]}${index[2]}`;
  if (text?.endsWith(':task/${Cluster}/*')) return 'Cluster/task';
  throw new Error(`a resource that this doesn't know: ${JSON.stringify(resource)}`);
}

/**
 * @param excepted permissions that this code doesn't use itself
 * @returns one line for each call that isn't permitted, each permission without a call, each exception without a permission
 */
export function compare(
  used: ReadonlySet<Permission>,
  may: ReadonlySet<Permission>,
  excepted: readonly Permission[] = [],
) {
  return [
    ...[...used].filter((one) => !may.has(one)).map((one) => `not permitted: ${one}`),
    ...[...may].filter((one) => !used.has(one) && !excepted.includes(one)).map((one) => `never used: ${one}`),
    ...excepted.filter((one) => !may.has(one)).map((one) => `excepted, but not permitted: ${one}`),
    ...excepted.filter((one) => used.has(one)).map((one) => `excepted, but used: ${one}`),
  ].sort((a, b) => a.localeCompare(b));
}
