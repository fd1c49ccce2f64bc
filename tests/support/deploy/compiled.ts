/** The template as CloudFormation gets it. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { baseEnvironment } from '../../../local/environment.ts';
import type { Project } from './project.ts';

export type Resource = {
  Type: string;
  Condition?: string;
  DeletionPolicy?: string;
  Properties: Record<string, unknown>;
};

export type CompiledTemplate = {
  Parameters?: Record<string, { Default?: string }>;
  Conditions?: Record<string, unknown>;
  Resources: Record<string, Resource>;
};

/** @param args e.g. `['--stage', 'prod', '--param', 'shards=4']` */
export async function compile(project: Project, args: string[]): Promise<CompiledTemplate> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-package-'));
  try {
    const { code, output } = await project.sls(['package', '--package', folder, ...args], baseEnvironment(process.env));
    if (code !== 0) throw new Error(`sls package ${args.join(' ')} failed:\n${output}`);
    const text = await readFile(join(folder, 'cloudformation-template-update-stack.json'), 'utf8');
    return JSON.parse(text) as CompiledTemplate;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export function ofType(template: CompiledTemplate, type: string): [string, Resource][] {
  return Object.entries(template.Resources).filter(([, resource]) => resource.Type === type);
}
