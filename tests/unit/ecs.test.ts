import { type DescribeTasksCommand, ECSClient } from '@aws-sdk/client-ecs';
import { expect, jest, test } from '@jest/globals';
import { taskStatus } from '../../functions/ecs.ts';

const arn = 'arn:aws:ecs:us-east-1:000000000000:task/fleet/1';

/** An ECS that answers so. */
function asked(answer: unknown) {
  const ecs = new ECSClient({ region: 'us-east-1' });
  const send = jest.fn((_command: DescribeTasksCommand) => Promise.resolve(answer));
  Object.assign(ecs, { send });
  return { status: taskStatus(ecs, 'fleet')(arn), send };
}

test.each([
  ['STOPPED', { tasks: [{ lastStatus: 'STOPPED' }] }],
  ['RUNNING', { tasks: [{ lastStatus: 'RUNNING' }] }],
  ['DEPROVISIONING', { tasks: [{ lastStatus: 'DEPROVISIONING' }] }],
])('says %s as ECS says it', async (status, answer) => {
  const { status: said, send } = asked(answer);
  expect(await said).toBe(status);
  expect(send.mock.calls[0]?.[0].input).toEqual({ cluster: 'fleet', tasks: [arn] });
});

test('a task that ECS has forgotten has stopped', async () => {
  expect(await asked({ tasks: [], failures: [{ arn, reason: 'MISSING' }] }).status).toBe('STOPPED');
});

test('any other failure says nothing about the task', async () => {
  expect(await asked({ tasks: [], failures: [{ arn, reason: 'ACCESS_DENIED' }] }).status).toBe('UNKNOWN');
  expect(await asked({}).status).toBe('UNKNOWN');
});
