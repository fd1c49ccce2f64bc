/** What CloudFormation knows of a stack. */
import {
  type CloudFormationClient,
  GetTemplateCommand,
  paginateListStackResources,
} from '@aws-sdk/client-cloudformation';
import type { CompiledTemplate } from './compiled.ts';

type OfStacks = { cloudformation: CloudFormationClient };

/** Logical name -> physical name, of what CloudFormation says that it made. */
export async function madeResources(aws: OfStacks, stack: string): Promise<Record<string, string>> {
  const made: Record<string, string> = {};
  for await (const page of paginateListStackResources({ client: aws.cloudformation }, { StackName: stack })) {
    for (const { LogicalResourceId: id, PhysicalResourceId: physical } of page.StackResourceSummaries ?? []) {
      if (id !== undefined) made[id] = physical ?? '';
    }
  }
  return made;
}

export async function deployedTemplate(aws: OfStacks, stack: string): Promise<CompiledTemplate> {
  const { TemplateBody } = await aws.cloudformation.send(new GetTemplateCommand({ StackName: stack }));
  return JSON.parse(TemplateBody ?? '') as CompiledTemplate;
}
