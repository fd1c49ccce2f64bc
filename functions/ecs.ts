import { DescribeTasksCommand, type ECSClient } from '@aws-sdk/client-ecs';

/**
 * What ECS says of a task of this cluster now.
 * @returns its `lastStatus`; STOPPED too when ECS doesn't know it (any more): it forgets stopped tasks after an hour
 */
export function taskStatus(ecs: ECSClient, cluster: string): (taskArn: string) => Promise<string> {
  return async (taskArn) => {
    const answer = await ecs.send(new DescribeTasksCommand({ cluster, tasks: [taskArn] }));
    const missing = answer.failures?.some(({ reason }) => reason === 'MISSING');
    return answer.tasks?.[0]?.lastStatus ?? (missing ? 'STOPPED' : 'UNKNOWN');
  };
}
