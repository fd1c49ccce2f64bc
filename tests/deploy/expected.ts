/** What a stack of stage `test` must be, said once more and independently of the template. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';

export const FLEET = 'holdfast-test';

export const tables = {
  [`${FLEET}-connections`]: {
    keys: ['pk HASH'],
    indexes: {
      by_desired_state: {
        keys: ['desired_shard HASH', 'lease_expires_at_ms RANGE'],
        projection: { ProjectionType: 'KEYS_ONLY' },
      },
      by_owner: {
        keys: ['lease_owner HASH', 'pk RANGE'],
        projection: { ProjectionType: 'INCLUDE', NonKeyAttributes: ['desired_state', 'generation', 'lease_epoch'] },
      },
    },
    billing: 'PAY_PER_REQUEST',
    protected: false,
  },
  [`${FLEET}-workers`]: { keys: ['worker_id HASH'], indexes: {}, billing: 'PAY_PER_REQUEST' },
  [`${FLEET}-messages`]: { keys: ['pk HASH', 'sk RANGE'], indexes: {}, billing: 'PAY_PER_REQUEST' },
};

/** seconds, as SQS gives them */
export const queues = {
  [`${FLEET}-wake-up`]: {
    VisibilityTimeout: '30',
    ReceiveMessageWaitTimeSeconds: '10',
    MessageRetentionPeriod: '600',
    RedrivePolicy: expect.stringMatching(new RegExp(`${FLEET}-wake-up-dead-letters".*"maxReceiveCount": ?10`)),
  },
  [`${FLEET}-wake-up-dead-letters`]: { MessageRetentionPeriod: '1209600' },
};

const everyFunction = { runtime: 'nodejs24.x', memory: 256 };

/** timeout: seconds */
export const functions = {
  [`${FLEET}-events`]: { ...everyFunction, handler: 'functions/events.handler', timeout: 10 },
  [`${FLEET}-status`]: { ...everyFunction, handler: 'functions/status.handler', timeout: 10 },
  [`${FLEET}-reconcile`]: { ...everyFunction, handler: 'functions/reconcile.handler', timeout: 75 },
};

/** days */
export const logGroups = {
  [`/aws/lambda/${FLEET}-events`]: 14,
  [`/aws/lambda/${FLEET}-status`]: 14,
  [`/aws/lambda/${FLEET}-reconcile`]: 14,
  [`/ecs/${FLEET}-worker`]: 14,
};

export const task = {
  family: `${FLEET}-worker`,
  containerDefinitions: [
    {
      name: 'worker',
      essential: true,
      user: 'node',
      readonlyRootFilesystem: true,
      stopTimeout: 120,
      ulimits: [{ name: 'nofile', softLimit: 65536, hardLimit: 65536 }],
      linuxParameters: { initProcessEnabled: false, capabilities: { drop: ['ALL'] } },
      mountPoints: [{ sourceVolume: 'tmp', containerPath: '/tmp', readOnly: false }],
      logConfiguration: {
        logDriver: 'awslogs',
        options: { 'awslogs-group': `/ecs/${FLEET}-worker`, mode: 'non-blocking' },
      },
      healthCheck: { command: ['CMD', 'node', '/app/worker/health.ts', '--check'] },
    },
  ],
};

export const service = { serviceName: 'worker', status: 'ACTIVE' };

/** moto's CloudFormation passes over these. */
export const unknownToMoto = [
  'AWS::ApiGateway::ApiKey',
  'AWS::ApiGateway::UsagePlan',
  'AWS::ApiGateway::UsagePlanKey',
  'AWS::ApplicationAutoScaling::ScalableTarget',
  'AWS::ApplicationAutoScaling::ScalingPolicy',
  'AWS::CloudWatch::Alarm',
  'AWS::Lambda::EventInvokeConfig',
  'AWS::S3::BucketPolicy',
];

export const nothing = {
  tables: {},
  queues: {},
  functions: {},
  rules: {},
  roles: {},
  logGroups: {},
  repository: undefined,
  buckets: [],
};

/** Of what moto makes, what it makes otherwise. */
export const ignoredByMoto = [
  'AWS::DynamoDB::Table: TTL, point-in-time recovery, encryption',
  'AWS::Lambda::Function: architecture',
  'AWS::ECS::TaskDefinition: roles, cpu, platform, network mode',
  'AWS::ECS::Service: launch type, network, deployment',
  'an update of a task definition or a service',
];

const protectedTable = {
  Type: 'AWS::DynamoDB::Table',
  DeletionPolicy: 'Delete',
  Properties: {
    TimeToLiveSpecification: { AttributeName: 'expires_at', Enabled: true },
    PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    SSESpecification: { SSEEnabled: true, SSEType: 'KMS' },
  },
};

const armFunction = { Properties: { Architectures: ['arm64'] } };

/** What moto makes without these properties, and what it doesn't make at all. */
export const onlyInTemplate = {
  ConnectionsTable: protectedTable,
  WorkersTable: protectedTable,
  MessagesTable: protectedTable,
  EventsLambdaFunction: armFunction,
  StatusLambdaFunction: armFunction,
  ReconcileLambdaFunction: armFunction,
  ReconcileLambdaEvConf: { Properties: { MaximumRetryAttempts: 2, MaximumEventAgeInSeconds: 300 } },
  WakeUpDeadLetterQueue: { Properties: { SqsManagedSseEnabled: { 'Fn::If': ['HasKmsKey', expect.anything(), true] } } },
  WorkerTask: {
    Properties: {
      TaskRoleArn: { 'Fn::GetAtt': ['WorkerRole', 'Arn'] },
      ExecutionRoleArn: { 'Fn::GetAtt': ['WorkerExecutionRole', 'Arn'] },
      RequiresCompatibilities: ['FARGATE'],
      RuntimePlatform: { CpuArchitecture: 'ARM64', OperatingSystemFamily: 'LINUX' },
      NetworkMode: 'awsvpc',
      Cpu: '512',
      Memory: '1024',
    },
  },
  WorkerService: {
    Properties: {
      LaunchType: 'FARGATE',
      PropagateTags: 'SERVICE',
      DeploymentConfiguration: {
        MinimumHealthyPercent: 100,
        DeploymentCircuitBreaker: { Enable: true, Rollback: true },
      },
      NetworkConfiguration: {
        AwsvpcConfiguration: { AssignPublicIp: 'ENABLED', SecurityGroups: [{ Ref: 'WorkerSecurityGroup' }] },
      },
    },
  },
  WorkerScaling: { Properties: { MinCapacity: '2', MaxCapacity: '10' } },
  WorkerScalingPolicy: {
    Properties: {
      TargetTrackingScalingPolicyConfiguration: { TargetValue: '490', ScaleOutCooldown: '120', ScaleInCooldown: '900' },
    },
  },
  ApiGatewayUsagePlan: { Properties: { Throttle: { RateLimit: 200, BurstLimit: 500 }, Quota: { Limit: 1_000_000 } } },
};

/** What nobody is told about isn't an alarm. */
export const telling = { 'Fn::If': ['HasAlarmTopic', [{ Ref: 'AlarmTopicArn' }], { Ref: 'AWS::NoValue' }] };

/** What an environment must come to. */
export function configuration(queueUrl: string | undefined) {
  return {
    tables: { connections: `${FLEET}-connections`, workers: `${FLEET}-workers`, messages: `${FLEET}-messages` },
    queueUrl: expect.stringMatching(new RegExp(`^https://sqs\\.us-east-1\\.amazonaws\\.com/\\d+/${FLEET}-wake-up$`)),
    serviceName: FLEET,
    workerLease: true,
    lease: { forMs: 20_000, heartbeatMs: 5000, skewMs: 1000 },
    connectionLease: { forMs: 3_600_000 },
    ...(queueUrl === undefined ? {} : { queueUrl }),
  };
}

const known = new Set([
  ...(
    readFileSync(join(import.meta.dirname, '..', '..', 'shared', 'config.ts'), 'utf8').match(
      /^ {2}[A-Z][A-Z0-9_]+(?=:)/gm,
    ) ?? []
  ).map((name) => name.trim()),
  'AWS_REGION',
]);

/** Names that shared/config.ts doesn't read: misspelt, or left over. */
export const unknownSettings = (environment: Record<string, string>): string[] =>
  Object.keys(environment).filter((name) => !known.has(name));

export function trusted(trust: unknown): string | undefined {
  const { Statement } = trust as { Statement: { Principal: { Service: string } }[] };
  return Statement.length === 1 ? Statement[0]?.Principal.Service : undefined;
}
