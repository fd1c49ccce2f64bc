import { lookup as resolve } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { hostOf, isPublicAddress } from '../shared/address.ts';

/** The address isn't one that this deployment dials. Trying again is useless. */
export class ForbiddenAddress extends Error {
  constructor(host: string) {
    super(`${host} leads to an address that isn't public; ALLOWED_HOSTS can allow it by name`);
    this.name = 'ForbiddenAddress';
  }
}

/**
 * Resolves a name and refuses it when any of its addresses isn't public. The socket connects to what this returns, so
 * the address that was checked is the one that is dialled, even if the name points elsewhere a moment later.
 */
export function checkedLookup(allowedHosts: string[]): LookupFunction {
  return (host, options, callback) => {
    resolve(host, { ...options, all: true }, (fault, addresses) => {
      if (fault) return callback(fault, []);
      const allowed = allowedHosts.includes(host) || addresses.every(({ address }) => isPublicAddress(address));
      const first = addresses[0];
      if (!allowed || !first) return callback(new ForbiddenAddress(host), []);
      if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

/** A literal address is never looked up, so it is checked here. @throws ForbiddenAddress */
export function checkLiteral(url: URL, allowedHosts: string[]): void {
  const host = hostOf(url);
  if (isIP(host) !== 0 && !allowedHosts.includes(host) && !isPublicAddress(host)) throw new ForbiddenAddress(host);
}
