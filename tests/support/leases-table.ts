/** Renewals whose every answer a test decides, and when it comes. */
import type { LeasesTable } from '../../shared/tables/leases.ts';
import { settled } from './virtual-clock.ts';

export type Renewal = {
  readonly expiresAtMs: number;
  readonly lastSeq: string | undefined;
  answer(outcome: 'renewed' | 'refused'): Promise<void>;
  fail(): Promise<void>;
};

export function fakeRenewals() {
  const sent: Renewal[] = [];
  const renew: LeasesTable['renew'] = (_claim, expiresAtMs, lastSeq) => {
    const { promise, resolve, reject } = Promise.withResolvers<'renewed' | 'refused'>();
    sent.push({
      expiresAtMs,
      lastSeq,
      answer: (outcome) => {
        resolve(outcome);
        return settled();
      },
      fail: () => {
        reject(new Error('timed out'));
        return settled();
      },
    });
    return promise;
  };
  const unused = () => {
    throw new Error('only renewals are expected here');
  };
  const leases: LeasesTable = { renew, acquire: unused, adopt: unused, setStatus: unused, release: unused };
  return { leases, sent };
}
