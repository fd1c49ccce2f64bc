import { percentile } from '../../local/measure.ts';
import { atMost, type Case, exactly, inSeconds } from '../case.ts';
import { failover } from '../failover.ts';

const LEASE_MS = 20_000;
const SWEEP_MS = 5_000;
const SPARE_MS = 2_000;

export const sigkill: Case = {
  name: 'sigkill',
  what: 'SIGKILL one of three workers, 300 connections at 1 message/s',
  mustBe: 'all back within lease + sweep + 2 s (27 s); 0 lost, 0 twice',
  published: 'back after 77.7 s (median), 5,010 messages lost (one of the workers, 200 connections)',
  async run(bench) {
    const { concerned, gapsMs, heldTwice, lost, twice, stored, resent } = await failover(bench, 'SIGKILL');
    return {
      checks: [
        atMost(`the last of ${concerned} back after`, Math.max(...gapsMs), LEASE_MS + SWEEP_MS + SPARE_MS),
        exactly('lost', lost, 0),
        exactly('twice', twice, 0),
        exactly('sockets held twice', heldTwice, 0),
      ],
      notes: [
        `back after ${inSeconds(percentile(gapsMs, 0.5))} (median)`,
        `${stored} messages stored; the source was asked for ${resent} of them again`,
      ],
    };
  },
};
