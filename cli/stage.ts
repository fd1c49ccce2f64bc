import { StopTaskCommand } from '@aws-sdk/client-ecs';
import { GetFunctionConfigurationCommand } from '@aws-sdk/client-lambda';
import { readConfig } from '../shared/config.ts';
import { clientsFor } from './clients.ts';
import { CliError } from './exit.ts';
import { type Target, targetOf } from './target.ts';

/** As serverless.yml calls it. */
const service = 'holdfast';

/**
 * A deployed stage. Where its tables and queue are and how it is set is read from the environment of its reconcile
 * function: that is what the fleet really runs with.
 */
export async function openStage(stage: string, region: string | undefined): Promise<Target> {
  const clients = clientsFor({ region });
  const reconcileFunction = `${service}-${stage}-reconcile`;
  const { lambda, ecs } = clients;
  const config = readConfig(await environmentOf());
  return targetOf({
    title: `stage ${stage}`,
    clients,
    config,
    reconcileFunction,
    async stopWorker({ workerId, taskArn }) {
      if (taskArn === undefined || config.cluster === undefined) {
        throw new CliError(`${workerId} has not said which task it runs in`, 'stop it where it runs, with SIGTERM');
      }
      // ECS sends SIGTERM, waits for the stop timeout, and starts another task in its place.
      const reason = 'drained by npm run fleet';
      await ecs.send(new StopTaskCommand({ cluster: config.cluster, task: taskArn, reason }));
      return `ECS stops its task ${taskArn.split('/').at(-1)}, and starts another one`;
    },
  });

  async function environmentOf(): Promise<Record<string, string>> {
    try {
      const answer = await lambda.send(new GetFunctionConfigurationCommand({ FunctionName: reconcileFunction }));
      return answer.Environment?.Variables ?? {};
    } catch (fault) {
      if (!(fault instanceof Error) || fault.name !== 'ResourceNotFoundException') throw fault;
      throw new CliError(
        `stage ${stage} isn't deployed in ${await lambda.config.region()}`,
        `deploy it with \`npx serverless deploy --stage ${stage}\`, or name another --stage or --region`,
      );
    }
  }
}
