import { percentile } from '../../local/measure.ts';
import { atMost, type Case, exactly, inSeconds } from '../case.ts';
import { failover } from '../failover.ts';

const BOUND_MS = 1_000;

export const sigterm: Case = {
  name: 'sigterm',
  what: 'SIGTERM one of three workers, 300 connections at 1 message/s',
  mustBe: 'p99 gap under 1 s; 0 lost, 0 twice',
  published: 'back after 49 s, 1,470 messages lost (100 connections)',
  async run(bench) {
    const { concerned, gapsMs, heldTwice, lost, twice, stored, resent } = await failover(bench, 'SIGTERM');
    return {
      checks: [
        atMost(`p99 gap of ${concerned}`, percentile(gapsMs, 0.99), BOUND_MS),
        exactly('lost', lost, 0),
        exactly('twice', twice, 0),
        exactly('sockets held twice', heldTwice, 0),
      ],
      notes: [
        `gap ${inSeconds(percentile(gapsMs, 0.5))} (median), ${inSeconds(Math.max(...gapsMs))} (longest)`,
        `${stored} messages stored; the source was asked for ${resent} of them again`,
      ],
    };
  },
};
