import { afterEach, describe, expect, test } from '@jest/globals';
import { handler as events } from '../../functions/events.ts';
import { httpHandler } from '../../functions/http.ts';
import { Refusal } from '../../functions/refusal.ts';
import { apiEvent, call, context } from '../support/lambda.ts';

const environment = { ...process.env };
const needed = { CONNECTIONS_TABLE: 'c', WORKERS_TABLE: 'w', MESSAGES_TABLE: 'm', QUEUE_URL: 'http://127.0.0.1:9/q' };
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
});

function fails(fault: Error) {
  Object.assign(process.env, { ...needed, LOG_LEVEL: 'silent' });
  const throws = async () => {
    throw fault;
  };
  const handler = httpHandler('test', () => ({ 'GET /x': throws }));
  return call(handler, { resource: '/x' });
}

describe('what failed on this side', () => {
  test('is a 500 that says nothing of it, and where to find it', async () => {
    const answer = await fails(new TypeError("can't read 'secret' of table holdfast-prod-connections"));
    expect(answer.status).toBe(500);
    expect(answer.body).toEqual({
      error: {
        code: 'internal',
        message: expect.stringContaining('on the side of the service'),
        request_id: 'request-1',
      },
    });
  });

  test('a wrong configuration is a 500 that says nothing of it', async () => {
    const answer = await call(events, { resource: '/events', body: {} });
    expect(answer).toMatchObject({ status: 500, body: { error: { code: 'internal' } } });
    expect(JSON.stringify(answer.body)).not.toContain('TABLE');
  });

  test('is answered before Lambda ends the call', async () => {
    Object.assign(process.env, { ...needed, LOG_LEVEL: 'silent' });
    const handler = httpHandler('test', () => ({ 'GET /x': () => new Promise(() => undefined) }));
    const answer = await handler(apiEvent({ resource: '/x' }), context(50));
    expect(answer.statusCode).toBe(500);
  });
});

test('a refusal goes to the sender as it is', async () => {
  const refusal = new Refusal(409, 'taken', [{ field: 'a', message: 'is taken' }], { by: 'b' });
  expect(await fails(refusal)).toMatchObject({
    status: 409,
    body: { error: { code: 'taken', message: 'a is taken', field: 'a', by: 'b' } },
  });
});

test('one that is busy says when to come again', async () => {
  expect((await fails(new Refusal(503, 'busy', 'busy'))).headers).toMatchObject({ 'retry-after': '1' });
});
