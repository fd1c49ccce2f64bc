import { describe, expect, test } from '@jest/globals';
import { readConfig } from '../../shared/config.ts';
import { ConfigError } from '../../shared/errors.ts';

const needed = { CONNECTIONS_TABLE: 'c', WORKERS_TABLE: 'w', MESSAGES_TABLE: 'm', QUEUE_URL: 'http://127.0.0.1:9/q' };

function problems(environment: Record<string, string>): string[] {
  try {
    readConfig({ ...needed, ...environment });
    return [];
  } catch (fault) {
    if (fault instanceof ConfigError) return fault.message.split('\n');
    throw fault;
  }
}

test('the defaults are those that are published, in milliseconds inside', () => {
  expect(readConfig(needed)).toMatchObject({
    lease: { forMs: 20_000, heartbeatMs: 5_000 },
    reconcile: { everyMs: 60_000 },
    stopCheckMs: 5_000,
    maxConnections: 700,
    metrics: { to: 'cloudwatch', everyMs: 30_000 },
    allowedHosts: [],
  });
});

test('a variable that is set to nothing is as if it were not set', () => {
  expect(readConfig({ ...needed, LEASE_SECONDS: '', MAX_CONNECTIONS: '' })).toEqual(readConfig(needed));
});

test('fractions of a second, and lists with spaces', () => {
  const config = readConfig({ ...needed, SWEEP_EVERY: '0.25', ALLOWED_HOSTS: ' localhost, 10.0.3.7,, ' });
  expect(config).toMatchObject({ reconcile: { sweepMs: 250 }, allowedHosts: ['localhost', '10.0.3.7'] });
});

test('the request timeout follows from the heartbeat unless it is set', () => {
  expect(readConfig(needed).requestTimeoutMs).toBe(3_000);
  expect(readConfig({ ...needed, HEARTBEAT_EVERY: '1' }).requestTimeoutMs).toBe(600);
  expect(readConfig({ ...needed, REQUEST_TIMEOUT: '2' }).requestTimeoutMs).toBe(2_000);
});

describe('is refused with one line for each setting', () => {
  test('that is missing', () => {
    expect(() => readConfig({})).toThrow(ConfigError);
    expect(problems({ CONNECTIONS_TABLE: '', QUEUE_URL: '' })).toEqual([
      'CONNECTIONS_TABLE: is missing',
      'QUEUE_URL: is missing',
    ]);
  });

  test.each([
    ['LEASE_SECONDS', 'twenty'],
    ['LEASE_SECONDS', '-1'],
    ['MAX_CONNECTIONS', '1.5'],
    ['SHARDS', '0'],
    ['LOG_LEVEL', 'loud'],
    ['METRICS', 'statsd'],
  ])('that is wrong: %s=%s', (name, value) => {
    expect(problems({ [name]: value })).toEqual([expect.stringMatching(new RegExp(`^${name}: `))]);
  });

  test.each<[Record<string, string>, RegExp]>([
    [{ HEARTBEAT_EVERY: '7' }, /HEARTBEAT_EVERY \(7\) must be under a third of LEASE_SECONDS \(20\)/],
    [{ REQUEST_TIMEOUT: '5' }, /REQUEST_TIMEOUT \(5\) must be under HEARTBEAT_EVERY \(5\)/],
    [{ CLOCK_SKEW: '12' }, /CLOCK_SKEW \(12\) leaves no time to renew/],
    [{ SWEEP_EVERY: '61' }, /SWEEP_EVERY \(61\) must not be over RECONCILE_EVERY \(60\)/],
    [{ STOP_TIMEOUT: '5', LONG_POLL: '1' }, /STOP_TIMEOUT \(5\) must be over CLOSE_TIMEOUT/],
    [{ LONG_POLL: '20', STOP_TIMEOUT: '20' }, /LONG_POLL \(20\) must be under STOP_TIMEOUT \(20\)/],
    [{ REDIAL_BASE: '31' }, /REDIAL_BASE \(31\) must not be over REDIAL_CAP \(30\)/],
  ])('that does not fit another: %j', (environment, line) => {
    expect(problems(environment)).toEqual([expect.stringMatching(line)]);
  });

  test('all that do not fit at once', () => {
    expect(problems({ HEARTBEAT_EVERY: '7', SWEEP_EVERY: '61' })).toHaveLength(2);
  });
});
