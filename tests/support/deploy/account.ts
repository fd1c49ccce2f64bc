/** What there is of one fleet in an AWS account, by AWS's own word. Without times, revisions and the like: two of them compare. */
import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { CloudWatchLogsClient, DescribeLogGroupsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { DescribeTableCommand, DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { DescribeRepositoriesCommand, ECRClient } from '@aws-sdk/client-ecr';
import {
  DescribeClustersCommand,
  DescribeServicesCommand,
  DescribeTaskDefinitionCommand,
  ECSClient,
} from '@aws-sdk/client-ecs';
import { EventBridgeClient, ListRulesCommand, ListTargetsByRuleCommand } from '@aws-sdk/client-eventbridge';
import {
  GetRoleCommand,
  GetRolePolicyCommand,
  IAMClient,
  ListRolePoliciesCommand,
  ListRolesCommand,
} from '@aws-sdk/client-iam';
import { GetFunctionConfigurationCommand, LambdaClient, ListFunctionsCommand } from '@aws-sdk/client-lambda';
import { ListBucketsCommand, S3Client } from '@aws-sdk/client-s3';
import { GetQueueAttributesCommand, ListQueuesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { LOCAL_REGION, localCredentials } from '../../../local/environment.ts';

export type Account = ReturnType<typeof openAccount>;
export type Snapshot = Awaited<ReturnType<typeof snapshot>>;

export function openAccount(endpoint: string) {
  const options = { endpoint, region: LOCAL_REGION, credentials: localCredentials };
  return {
    cloudformation: new CloudFormationClient(options),
    dynamodb: new DynamoDBClient(options),
    ecr: new ECRClient(options),
    ecs: new ECSClient(options),
    events: new EventBridgeClient(options),
    iam: new IAMClient(options),
    lambda: new LambdaClient(options),
    logs: new CloudWatchLogsClient(options),
    s3: new S3Client({ ...options, forcePathStyle: true }),
    sqs: new SQSClient(options),
  };
}

/** @param name of the fleet: what all of its names begin with, e.g. `holdfast-test` */
export async function snapshot(aws: Account, name: string) {
  return {
    tables: await tables(aws, name),
    queues: await queues(aws, name),
    functions: await functions(aws, name),
    rules: await rules(aws, name),
    roles: await roles(aws, name),
    logGroups: await logGroups(aws, name),
    repository: await repository(aws, name),
    buckets: await buckets(aws, name),
    ...(await fleet(aws, name)),
  };
}

async function byName<T>(names: string[], read: (name: string) => Promise<T>): Promise<Record<string, T>> {
  return Object.fromEntries(await Promise.all(names.sort().map(async (name) => [name, await read(name)] as const)));
}

async function tables({ dynamodb }: Account, fleet: string) {
  const { TableNames = [] } = await dynamodb.send(new ListTablesCommand({}));
  return byName(ofFleet(TableNames, fleet), async (TableName) => {
    const { Table } = await dynamodb.send(new DescribeTableCommand({ TableName }));
    return {
      keys: Table?.KeySchema?.map(({ AttributeName, KeyType }) => `${AttributeName} ${KeyType}`),
      attributes: Object.fromEntries(
        (Table?.AttributeDefinitions ?? []).map((one) => [one.AttributeName, one.AttributeType]),
      ),
      indexes: Object.fromEntries(
        (Table?.GlobalSecondaryIndexes ?? []).map((index) => [
          index.IndexName,
          { keys: index.KeySchema?.map((key) => `${key.AttributeName} ${key.KeyType}`), projection: index.Projection },
        ]),
      ),
      billing: Table?.BillingModeSummary?.BillingMode,
      protected: Table?.DeletionProtectionEnabled,
    };
  });
}

async function queues({ sqs }: Account, fleet: string) {
  const { QueueUrls = [] } = await sqs.send(new ListQueuesCommand({ QueueNamePrefix: `${fleet}-wake-up` }));
  const volatile = /^(Created|LastModified|Approximate)/;
  const attributes = async (QueueUrl: string) => {
    const answer = await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] }));
    return Object.fromEntries(Object.entries(answer.Attributes ?? {}).filter(([key]) => !volatile.test(key)));
  };
  return byName(
    QueueUrls.map((url) => url.slice(url.lastIndexOf('/') + 1)),
    (queue) => attributes(QueueUrls.find((url) => url.endsWith(`/${queue}`)) ?? ''),
  );
}

async function functions({ lambda }: Account, fleet: string) {
  const { Functions = [] } = await lambda.send(new ListFunctionsCommand({}));
  return byName(
    ofFleet(
      Functions.map((one) => one.FunctionName ?? ''),
      fleet,
    ),
    async (FunctionName) => {
      const found = await lambda.send(new GetFunctionConfigurationCommand({ FunctionName }));
      return {
        handler: found.Handler,
        runtime: found.Runtime,
        architectures: found.Architectures,
        memory: found.MemorySize,
        timeout: found.Timeout,
        role: found.Role,
        codeSha256: found.CodeSha256,
        environment: found.Environment?.Variables ?? {},
      };
    },
  );
}

async function rules({ events }: Account, fleet: string) {
  const { Rules = [] } = await events.send(new ListRulesCommand({}));
  return byName(
    ofFleet(
      Rules.map((rule) => rule.Name ?? ''),
      fleet,
    ),
    async (Rule) => {
      const rule = Rules.find(({ Name }) => Name === Rule);
      const { Targets = [] } = await events.send(new ListTargetsByRuleCommand({ Rule }));
      return {
        state: rule?.State,
        schedule: rule?.ScheduleExpression,
        pattern: rule?.EventPattern === undefined ? undefined : (JSON.parse(rule.EventPattern) as unknown),
        targets: Targets.map(({ Arn }) => Arn),
      };
    },
  );
}

async function roles({ iam }: Account, fleet: string) {
  const { Roles = [] } = await iam.send(new ListRolesCommand({}));
  return byName(
    ofFleet(
      Roles.map((role) => role.RoleName ?? ''),
      fleet,
    ),
    async (RoleName) => {
      const { Role } = await iam.send(new GetRoleCommand({ RoleName }));
      const { PolicyNames = [] } = await iam.send(new ListRolePoliciesCommand({ RoleName }));
      const policies = await byName(PolicyNames, async (PolicyName) => {
        const found = await iam.send(new GetRolePolicyCommand({ RoleName, PolicyName }));
        // As text: moto gives it back in a notation of its own. What is in it is tested in the template.
        return decodeURIComponent(found.PolicyDocument ?? '');
      });
      return { trust: JSON.parse(decodeURIComponent(Role?.AssumeRolePolicyDocument ?? '')) as unknown, policies };
    },
  );
}

async function logGroups({ logs }: Account, fleet: string) {
  const { logGroups: groups = [] } = await logs.send(new DescribeLogGroupsCommand({}));
  const own = groups.filter(({ logGroupName }) => logGroupName?.includes(`/${fleet}-`));
  return Object.fromEntries(own.map((group) => [group.logGroupName ?? '', group.retentionInDays]));
}

async function repository({ ecr }: Account, fleet: string) {
  const { repositories = [] } = await ecr.send(new DescribeRepositoriesCommand({}));
  return repositories.find(({ repositoryName }) => repositoryName === `${fleet}-worker`)?.repositoryUri;
}

async function buckets({ s3 }: Account, fleet: string) {
  const { Buckets = [] } = await s3.send(new ListBucketsCommand({}));
  return Buckets.map(({ Name = '' }) => Name).filter((name) => name.startsWith(`${fleet}-serverless`));
}

async function fleet({ ecs }: Account, name: string) {
  const { clusters = [] } = await ecs.send(new DescribeClustersCommand({ clusters: [name] }));
  const cluster = clusters.find(({ status }) => status === 'ACTIVE');
  if (cluster === undefined) return { cluster: undefined, service: undefined, task: undefined };
  const { services = [] } = await ecs.send(new DescribeServicesCommand({ cluster: name, services: ['worker'] }));
  const [service] = services;
  // The newest. moto's service stays with its first: it doesn't see that what a reference means has changed.
  const { taskDefinition } = await ecs.send(new DescribeTaskDefinitionCommand({ taskDefinition: `${name}-worker` }));
  return {
    cluster: { name: cluster.clusterName, settings: cluster.settings },
    service: steady(service),
    task: steady(taskDefinition),
  };
}

const changing = ['events', 'deployments', 'createdAt', 'registeredAt'];

/** Without what changes by itself. */
function steady<T extends object>(value: T | undefined): T | undefined {
  if (value === undefined) return undefined;
  return Object.fromEntries(Object.entries(value).filter(([key]) => !changing.includes(key))) as T;
}

/** `holdfast-test` is not the fleet of `holdfast-test-b-events`: what follows is one of the names that a stack gives. */
function ofFleet(names: string[], fleet: string): string[] {
  const own =
    /^(connections|workers|messages|events|status|reconcile|Reconcile\w*|reconcile-rule-\d+|\w+Role)(-[A-Z0-9]+)?$/;
  return names.filter((name) => name.startsWith(`${fleet}-`) && own.test(name.slice(fleet.length + 1)));
}
