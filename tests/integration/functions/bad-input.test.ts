import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { handler } from '../../../functions/events.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { type Answer, call, setEnvironment } from '../../support/lambda.ts';

let aws: TestAws;
let before: unknown;

const url = 'wss://feed.example.com/stream';
const good = { event_type: 'START', connection_id: 'good', ws_url: url };
const send = (body: unknown) => call(handler, { method: 'POST', resource: '/events', body });
const everything = async () => {
  const { Items: items } = await aws.dynamodb.send(new ScanCommand({ TableName: aws.tables.connections }));
  return items;
};

beforeAll(async () => {
  aws = await startAws({ namespace: 'fn-bad-input' });
  setEnvironment(aws);
  await send(good);
  before = await everything();
});

afterAll(() => aws?.stop());
// Whatever was refused has changed nothing.
afterEach(async () => expect(await everything()).toEqual(before));

/** One clear error: its code, where it is, and words that say what to change. */
function expectError(answer: Answer, status: number, code: string, field: string | undefined, words: RegExp): void {
  const { error } = answer.body as { error: Record<string, unknown> };
  expect({ status: answer.status, code: error['code'], field: error['field'] }).toEqual({ status, code, field });
  expect(error['message']).toMatch(words);
  expect(error['request_id']).toBe('request-1');
  expect(answer.headers['content-type']).toBe('application/json');
}

describe('bodies that are none', () => {
  test.each<[string, unknown, number, string, RegExp]>([
    ['no body', undefined, 400, 'no_body', /no body/],
    ['an empty one', ' \n', 400, 'no_body', /no body/],
    ['not JSON', '{"event_type": START}', 400, 'not_json', /not JSON/],
    ['a form', 'event_type=START&connection_id=a', 400, 'not_json', /not JSON/],
    ['a forbidden key', '{"__proto__": {}}', 400, 'not_json', /Forbidden key/],
    ['a list', '[]', 400, 'bad_request', /must be an object, not a list/],
    ['null', 'null', 400, 'bad_request', /must be an object, not null/],
    ['300 KB', { ...good, padding: 'x'.repeat(300 * 1024) }, 413, 'too_large', /262144/],
    ['300 KB that is not JSON', 'x'.repeat(300 * 1024), 413, 'too_large', /262144/],
  ])('%s', async (_name, body, status, code, words) => {
    expectError(await send(body), status, code, undefined, words);
  });

  test('the limit is for what is sent, and not for its base64', async () => {
    const sent = { resource: '/events', body: { ...good, padding: 'x'.repeat(240 * 1024) }, base64: true };
    expectError(await call(handler, sent), 400, 'bad_request', 'padding', /is not a field/);
  });

  test('300 KB in base64', async () => {
    const sent = { resource: '/events', body: { ...good, padding: 'x'.repeat(300 * 1024) }, base64: true };
    expectError(await call(handler, sent), 413, 'too_large', undefined, /262144/);
  });
});

describe('fields', () => {
  test.each<[string, object, string, RegExp]>([
    ['an unknown event type', { event_type: 'PAUSE' }, 'event_type', /must be START or STOP/],
    ['an event type in small letters', { event_type: 'start' }, 'event_type', /must be START or STOP/],
    ['no event type', { event_type: undefined }, 'event_type', /must be START or STOP/],
    ['no id', { connection_id: undefined }, 'connection_id', /is missing/],
    ['an empty id', { connection_id: '' }, 'connection_id', /1 to 256 printable/],
    ['an id with control characters', { connection_id: 'a\u0000b' }, 'connection_id', /printable ASCII/],
    ['an id with a line break at its end', { connection_id: 'a\n' }, 'connection_id', /printable ASCII/],
    ['an id with a space', { connection_id: 'a b' }, 'connection_id', /without spaces/],
    ['an id that is not ASCII', { connection_id: 'é' }, 'connection_id', /printable ASCII/],
    ['an id of 2 KB', { connection_id: 'x'.repeat(2048) }, 'connection_id', /1 to 256/],
    ['a number as id', { connection_id: 7 }, 'connection_id', /must be a string, not a number/],
    ['no URL', { ws_url: undefined }, 'ws_url', /is missing/],
    ['a URL that is null', { ws_url: null }, 'ws_url', /must be a string, not null/],
    ['a URL of 3 KB', { ws_url: `${url}?${'x'.repeat(3000)}` }, 'ws_url', /2048 characters at most/],
    ['an unknown field', { wsurl: url }, 'wsurl', /is not a field that is known here/],
    ['a field with a long name', { ['x'.repeat(5000)]: 1 }, `${'x'.repeat(100)}…`, /is not a field/],
    ['an unknown source', { source: { name: 'zoom' } }, 'source.name', /must be one of: plain, numbered/],
    ['an unknown field of the source', { source: { name: 'plain', url } }, 'source.url', /is not a field/],
    ['a source as text', { source: 'plain' }, 'source', /must be an object, not a string/],
    [
      'an unknown parameter',
      { source: { name: 'plain', parameters: { a: 1 } } },
      'source.parameters.a',
      /is not a field/,
    ],
    [
      'numbers as strings in parameters',
      { source: { name: 'plain', parameters: { final_close_codes: ['4001'] } } },
      'source.parameters.final_close_codes.0',
      /must be a number, not a string/,
    ],
    ['a position where nothing is numbered', { ws_url: `${url}?a={last_seq}` }, 'ws_url', /numbers its messages/],
    ['a time as a string of digits', { event_time: '1893456000000' }, 'event_time', /must be a time like/],
    ['a time without a zone', { event_time: '2026-01-01T00:00:00' }, 'event_time', /with Z or an offset/],
    ['a time in seconds', { event_time: 1_767_225_600 }, 'event_time', /Unix milliseconds, and not seconds/],
    ['half a millisecond', { event_time: 1_767_225_600_000.5 }, 'event_time', /whole milliseconds/],
    ['a time that is true', { event_time: true }, 'event_time', /must be a (string|time)/],
    ['a time an hour ahead', { event_time: Date.now() + 3_600_000 }, 'event_time', /more than five minutes ahead/],
  ])('%s', async (_name, change, field, words) => {
    expectError(await send({ ...good, ...change }), 400, 'bad_request', field, words);
  });

  test('STOP is checked as well', async () => {
    const stop = { event_type: 'STOP', connection_id: 'good' };
    expectError(await send({ ...stop, force: true }), 400, 'bad_request', 'force', /is not a field/);
    expectError(await send({ ...stop, connection_id: ' ' }), 400, 'bad_request', 'connection_id', /printable/);
    const ahead = { ...stop, event_time: Date.now() + 3_600_000 };
    expectError(await send(ahead), 400, 'bad_request', 'event_time', /five minutes ahead/);
  });

  test('several problems are all named', async () => {
    const answer = await send({ ...good, connection_id: 7, ws_url: 8, more: 9 });
    expect(answer).toMatchObject({ status: 400, body: { error: { problems: expect.any(Array) } } });
    const { problems } = answer.body['error'] as { problems: { field: string }[] };
    expect(problems.map(({ field }) => field).sort()).toEqual(['connection_id', 'more', 'ws_url']);
  });
});

describe('addresses', () => {
  test.each([
    ['http://feed.example.com/', /must begin with ws:\/\/ or wss:\/\//],
    ['ws+unix:/tmp/socket', /must begin with ws:\/\/ or wss:\/\//],
    ['wss:feed.example.com', /must begin with ws:\/\/ or wss:\/\//],
    ['//feed.example.com', /is no URL/],
    ['wss://', /is no URL/],
    ['wss://user:secret@feed.example.com/', /must not hold a user name or password/],
    ['wss://feed.example.com/#part', /must not have a fragment/],
    ['wss://feed.example.com/#', /must not have a fragment/],
    ['wss://feed.example.com/a\nb', /spaces or control characters/],
    [' wss://feed.example.com/', /spaces or control characters/],
    ['ws://localhost:8080/', /localhost, which isn't a public address/],
    ['ws://LOCALHOST./', /localhost, which isn't a public address/],
    ['ws://a.localhost/', /isn't a public address/],
    ['ws://127.0.0.1/', /127.0.0.1, which isn't a public address/],
    ['ws://127.1/', /127.0.0.1, which isn't a public address/],
    ['ws://2130706433/', /127.0.0.1, which isn't a public address/],
    ['ws://0x7f.1/', /127.0.0.1, which isn't a public address/],
    ['ws://0.0.0.0/', /isn't a public address/],
    ['ws://10.1.2.3/', /isn't a public address/],
    ['ws://192.168.1.1/', /isn't a public address/],
    ['ws://100.64.0.1/', /isn't a public address/],
    ['ws://169.254.169.254/latest/meta-data/', /isn't a public address/],
    ['ws://169.254.170.2/v2/credentials', /isn't a public address/],
    ['ws://[::1]/', /isn't a public address/],
    ['ws://[::ffff:169.254.169.254]/', /isn't a public address/],
    ['ws://[64:ff9b::a9fe:a9fe]/', /isn't a public address/],
    ['ws://[fd00:ec2::254]/', /isn't a public address/],
    ['ws://[fe80::1]/', /isn't a public address/],
  ])('%s', async (ws_url, words) => {
    expectError(await send({ ...good, ws_url }), 400, 'bad_request', 'ws_url', words);
  });
});

test('an unknown route is a 404', async () => {
  const sent = { resource: '/nothing', method: 'POST', body: 'no JSON' } as const;
  expectError(await call(handler, sent), 404, 'unknown_route', undefined, /there is no POST \/nothing/);
  expectError(await call(handler, { resource: '/events' }), 404, 'unknown_route', undefined, /there is no GET/);
});
