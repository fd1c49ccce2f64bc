import ipaddr from 'ipaddr.js';

/**
 * Which addresses are never dialled, unless the deployment allows their host by name: anything that isn't a public
 * address. That includes loopback, private networks, link-local with the metadata service (169.254.169.254) and the
 * task's credentials (169.254.170.2), unique-local with fd00:ec2::254, and v4 addresses dressed as v6.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  // `process` turns a v4-mapped v6 address into the v4 address that it means.
  return ipaddr.process(address).range() === 'unicast';
}

/** @returns what is wrong with the URL, in words for the one who sent it; undefined when nothing is */
export function problemWithUrl(wsUrl: string, allowedHosts: string[]): string | undefined {
  const url = URL.parse(wsUrl);
  if (!url) return 'is no URL';
  if (url.protocol !== 'ws:' && url.protocol !== 'wss:') return `must begin with ws:// or wss://, not ${url.protocol}`;
  if (!/^wss?:\/\//i.test(wsUrl)) return 'must begin with ws:// or wss://';
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password';
  if (wsUrl.includes('#')) return 'must not have a fragment (#…)';
  const host = hostOf(url);
  if (allowedHosts.includes(host)) return undefined;
  const local = host === 'localhost' || host.endsWith('.localhost');
  if (local || (ipaddr.isValid(host) && !isPublicAddress(host))) {
    return `points to ${host}, which isn't a public address; ALLOWED_HOSTS of the deployment can allow it by name`;
  }
  return undefined;
}

/** Without the brackets of a v6 literal, and without the dot that may end a full name: `localhost.` is `localhost`. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}
