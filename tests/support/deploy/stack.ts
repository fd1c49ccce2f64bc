/** An empty emulated AWS, a copy of the project to deploy to it, and something that passes for docker. All of it is gone at the end. */
import { spawnSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { delimiter } from 'node:path';
import { DeleteMessageCommand, GetQueueUrlCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { baseEnvironment } from '../../../local/environment.ts';
import { startMotoServer } from '../moto.ts';
import { type Account, openAccount } from './account.ts';
import { type FakeBuilders, fakeBuilders } from './fake-builder.ts';
import { startFront } from './front.ts';
import { copyProject, type Ended, type Project } from './project.ts';

export interface DeployTest {
  readonly aws: Account;
  readonly endpoint: string;
  readonly project: Project;
  readonly builders: FakeBuilders;
  /** Runs `sls`. @throws with all that it said when it fails */
  must(args: string[]): Promise<Ended>;
  /** Takes all that is in the queue. */
  wakeUps(fleet: string): Promise<string[]>;
  stop(): Promise<void>;
}

/** Says so, once, when it isn't there. */
export function hasMoto(): boolean {
  // A shim may exist without the program behind it.
  if (spawnSync('moto_server', ['--help'], { stdio: 'ignore' }).status === 0) return true;
  process.stderr.write('skipped: moto_server is not installed here (pip install "moto[server]")\n');
  return false;
}

export async function startDeployTest(): Promise<DeployTest> {
  const moto = await startMotoServer();
  const front = await startFront(moto.url);
  const project = await copyProject();
  const builders = fakeBuilders(['docker', 'podman', 'buildah', 'finch']);
  const aws = openAccount(front.url);
  const env = {
    ...baseEnvironment(process.env),
    AWS_ENDPOINT_URL: front.url,
    PATH: `${builders.bin}${delimiter}${process.env['PATH']}`,
    FAKE_BUILDER_LOG: builders.log,
  };
  return {
    aws,
    endpoint: front.url,
    project,
    builders,
    async must(args) {
      const ended = await project.sls(args, env);
      if (ended.code !== 0) throw new Error(`sls ${args.join(' ')} failed:\n${ended.output}`);
      return ended;
    },
    async wakeUps(fleet) {
      const { QueueUrl } = await aws.sqs.send(new GetQueueUrlCommand({ QueueName: `${fleet}-wake-up` }));
      const taken = { QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1 };
      const { Messages = [] } = await aws.sqs.send(new ReceiveMessageCommand(taken));
      for (const { ReceiptHandle } of Messages)
        await aws.sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
      return Messages.map(({ Body = '' }) => Body);
    },
    async stop() {
      for (const client of Object.values(aws)) client.destroy();
      await front.stop();
      await moto.stop();
      await project.remove();
      await rm(builders.bin, { recursive: true, force: true });
    },
  };
}
