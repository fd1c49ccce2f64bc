import type { LookupAddress, LookupOptions } from 'node:dns';
import { beforeEach, describe, expect, jest, test } from '@jest/globals';

let found: LookupAddress[] | Error = [];
const asked: string[] = [];

// The real resolver knows only names that exist; the ones that matter here are those that an attacker makes.
jest.unstable_mockModule('node:dns', () => ({
  lookup(host: string, _options: LookupOptions, callback: (fault: Error | null, found?: LookupAddress[]) => void) {
    asked.push(host);
    if (found instanceof Error) callback(found);
    else callback(null, found);
  },
}));
const { checkedLookup, checkLiteral, ForbiddenAddress } = await import('../../../worker/lookup.ts');

const v4 = (address: string): LookupAddress => ({ address, family: 4 });
const v6 = (address: string): LookupAddress => ({ address, family: 6 });

type Outcome = { fault: Error | null; address: unknown; family: unknown };

function lookup(host: string, options: LookupOptions = { all: true }, allowed: string[] = []): Promise<Outcome> {
  return new Promise((resolve) =>
    checkedLookup(allowed)(host, options, (fault, address, family) => resolve({ fault, address, family })),
  );
}

beforeEach(() => {
  asked.length = 0;
});

describe('a name', () => {
  test('that leads to public addresses only is dialled at them', async () => {
    found = [v4('93.184.216.34'), v6('2606:2800:220:1::1')];
    expect(await lookup('example.com')).toMatchObject({ fault: null, address: found });
    expect(await lookup('example.com', {})).toEqual({ fault: null, address: '93.184.216.34', family: 4 });
  });

  test.each([
    ['the only one', [v4('10.0.0.7')]],
    ['the last one', [v4('93.184.216.34'), v6('2606:2800:220:1::1'), v4('127.0.0.1')]],
    ['the metadata service', [v4('169.254.169.254')]],
    ['its v6 twin', [v6('fd00:ec2::254')]],
    ['a v4 address in v6 clothes', [v4('93.184.216.34'), v6('::ffff:10.0.0.7')]],
    ['unspecified', [v4('0.0.0.0')]],
  ])('is refused when any address isn’t public: %s', async (_, addresses) => {
    found = addresses;
    for (const options of [{ all: true }, {}]) {
      const { fault } = await lookup('evil.example', options);
      expect(fault).toBeInstanceOf(ForbiddenAddress);
      expect(fault?.message).toContain('evil.example');
    }
  });

  test('that the deployment allows may lead anywhere, another one may not', async () => {
    found = [v4('10.0.0.7')];
    expect((await lookup('inside.example', {}, ['inside.example'])).address).toBe('10.0.0.7');
    expect((await lookup('inside.example.evil.example', {}, ['inside.example'])).fault).toBeInstanceOf(
      ForbiddenAddress,
    );
  });

  test('that has no address, or can’t be resolved, is no match', async () => {
    found = [];
    expect((await lookup('empty.example')).fault).toBeInstanceOf(ForbiddenAddress);
    found = new Error('ENOTFOUND');
    expect((await lookup('gone.example')).fault).toBe(found);
    expect(asked).toEqual(['empty.example', 'gone.example']);
  });
});

describe('a literal address', () => {
  test.each([
    'ws://127.0.0.1:8080/',
    'ws://[::1]/',
    'ws://[::ffff:10.0.0.1]/',
    'ws://2130706433/',
    'ws://0x7f.1/',
    'ws://169.254.170.2/v2/credentials',
    'ws://10.1.2.3./',
  ])('%s is refused', (url) => {
    expect(() => checkLiteral(new URL(url), [])).toThrow(ForbiddenAddress);
  });

  test.each([
    ['ws://93.184.216.34/', []],
    ['ws://127.0.0.1:8080/', ['127.0.0.1']],
    ['ws://[::1]/', ['::1']],
    ['ws://name.example/', []],
  ])('%s may be dialled with %j allowed', (url, allowed) => {
    expect(() => checkLiteral(new URL(url), allowed)).not.toThrow();
  });
});
