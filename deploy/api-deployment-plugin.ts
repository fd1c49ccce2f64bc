/**
 * Names API Gateway's deployment after what is deployed. osls names it after the time, and so finds something to deploy each time,
 * whatever has changed or not: a usage plan depends on that name, which osls leaves out of its comparison in other places only.
 */
import { createHash } from 'node:crypto';

type Template = { Resources: Record<string, { Type: string }> };

type Serverless = { service: { provider: { compiledCloudFormationTemplate: Template } } };

const TYPE = 'AWS::ApiGateway::Deployment';

/** @returns the same template when it has no such deployment */
export function withStableDeployment(template: Template): Template {
  const name = Object.keys(template.Resources).find((key) => template.Resources[key]?.Type === TYPE);
  if (name === undefined) return template;
  const text = JSON.stringify(template);
  // A deployment is a snapshot of these, which a change of theirs must take anew.
  const api = Object.entries(template.Resources).filter(([, { Type }]) => Type.startsWith('AWS::ApiGateway::'));
  const content = JSON.stringify(api).replaceAll(name, '');
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 12);
  return JSON.parse(text.replaceAll(name, `ApiGatewayDeployment${hash}`)) as Template;
}

// osls takes a plugin by its default export.
export default class ApiDeploymentPlugin {
  readonly hooks;

  constructor(serverless: Serverless) {
    const { provider } = serverless.service;
    this.hooks = {
      'before:package:finalize': async () => {
        provider.compiledCloudFormationTemplate = withStableDeployment(provider.compiledCloudFormationTemplate);
      },
    };
  }
}
