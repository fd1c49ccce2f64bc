import { describe, expect, test } from '@jest/globals';
import { withStableDeployment } from '../../../deploy/api-deployment-plugin.ts';

const template = (deployedAt: number, method = 'POST', memory = 256) => ({
  Resources: {
    Method: { Type: 'AWS::ApiGateway::Method', Properties: { HttpMethod: method } },
    [`ApiGatewayDeployment${deployedAt}`]: { Type: 'AWS::ApiGateway::Deployment', DependsOn: ['Method'] },
    Key: { Type: 'AWS::ApiGateway::ApiKey', DependsOn: `ApiGatewayDeployment${deployedAt}` },
    Function: { Type: 'AWS::Lambda::Function', Properties: { MemorySize: memory } },
  },
});

describe("the API's deployment", () => {
  test('has the same name at each time', () => {
    expect(withStableDeployment(template(1))).toEqual(withStableDeployment(template(2)));
  });

  test('keeps what depends on it', () => {
    const { Resources } = withStableDeployment(template(1));
    expect(Resources['Key']).toMatchObject({ DependsOn: expect.stringMatching(/^ApiGatewayDeployment[0-9a-f]{12}$/) });
    expect(Resources[(Resources['Key'] as unknown as { DependsOn: string }).DependsOn]).toBeDefined();
  });

  test('is another one when the API has changed, and only then', () => {
    const names = (of: ReturnType<typeof template>) => Object.keys(withStableDeployment(of).Resources);
    expect(names(template(1, 'PUT'))).not.toEqual(names(template(1)));
    expect(names(template(1, 'POST', 512))).toEqual(names(template(1)));
  });

  test('is left out where there is no API', () => {
    const without = { Resources: { Table: { Type: 'AWS::DynamoDB::Table' } } };
    expect(withStableDeployment(without)).toEqual(without);
  });
});
