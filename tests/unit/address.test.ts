import { describe, expect, test } from '@jest/globals';
import { hostOf, isPublicAddress, problemWithUrl } from '../../shared/address.ts';

test.each([
  ['93.184.215.14', true],
  ['2606:2800:21f:cb07:6820:80da:af6b:8b2c', true],
  ['127.0.0.1', false],
  ['0.0.0.0', false],
  ['10.0.0.1', false],
  ['172.16.0.1', false],
  ['192.168.0.1', false],
  ['100.64.0.1', false],
  ['169.254.169.254', false],
  ['169.254.170.2', false],
  ['224.0.0.1', false],
  ['255.255.255.255', false],
  ['::', false],
  ['::1', false],
  ['fe80::1', false],
  ['fd00:ec2::254', false],
  ['::ffff:127.0.0.1', false],
  ['::ffff:93.184.215.14', true],
  ['64:ff9b::a9fe:a9fe', false],
  ['2002:7f00:1::', false],
  ['feed.example.com', false],
  ['', false],
])('%s is public: %s', (address, expected) => {
  expect(isPublicAddress(address)).toBe(expected);
});

describe('a URL', () => {
  test.each([
    'wss://feed.example.com',
    'ws://feed.example.com:8080/a/b?c=d',
    'WSS://FEED.example.com/',
    'wss://feed.example.com/s?from={last_seq}',
    'wss://93.184.215.14/',
    'wss://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:9/',
    'wss://localhost.example.com/',
  ])('%s may be dialled', (url) => {
    expect(problemWithUrl(url, [])).toBeUndefined();
  });

  test.each([
    ['ws://localhost:1/', ['localhost']],
    ['ws://localhost./', ['localhost']],
    ['ws://127.0.0.1/', ['localhost', '127.0.0.1']],
    ['ws://[::1]/', ['::1']],
  ])('%s may be dialled where %j is allowed by name', (url, allowed) => {
    expect(problemWithUrl(url, [])).toMatch(/isn't a public address/);
    expect(problemWithUrl(url, ['other.example.com'])).toMatch(/isn't a public address/);
    expect(problemWithUrl(url, allowed)).toBeUndefined();
  });

  test('an allowed host is no way around the other rules', () => {
    expect(problemWithUrl('http://localhost/', ['localhost'])).toMatch(/must begin with/);
    expect(problemWithUrl('ws://a:b@localhost/', ['localhost'])).toMatch(/user name/);
    expect(problemWithUrl('ws://localhost.evil.example.com@127.0.0.1/', ['localhost'])).toMatch(/user name/);
  });

  test.each([
    ['ws://[::1]:80/', '::1'],
    ['ws://Example.COM.:80/', 'example.com'],
    ['ws://0x7f.1/', '127.0.0.1'],
  ])('the host of %s is %s', (url, host) => {
    expect(hostOf(new URL(url))).toBe(host);
  });
});
