import { randomUUID } from 'node:crypto';
import { LOCAL_REGION } from './environment.ts';
import type { StoppedTask } from './worker-process.ts';

/** What EventBridge delivers when an ECS task has ended, as far as anybody reads it. Source: "Amazon ECS task state change events". */
export function taskStoppedEvent({ taskArn, exitCode, signal, stoppedAtMs }: StoppedTask) {
  return {
    version: '0',
    id: randomUUID(),
    'detail-type': 'ECS Task State Change',
    source: 'aws.ecs',
    account: '000000000000',
    time: new Date(stoppedAtMs).toISOString(),
    region: LOCAL_REGION,
    resources: [taskArn],
    detail: {
      taskArn,
      clusterArn: taskArn.replace(':task/', ':cluster/').replace(/\/[^/]+$/, ''),
      desiredStatus: 'STOPPED',
      lastStatus: 'STOPPED',
      stopCode: 'EssentialContainerExited',
      stoppedReason: signal === null ? `exit code ${exitCode}` : `ended by ${signal}`,
      version: 5,
    },
  };
}
