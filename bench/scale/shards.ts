/** What the index of orphans takes, by the number of keys that it is spread over. */
import { unitsPerKey } from '../world/capacity.ts';

/** An acquisition moves the entry: a delete and a put under the same key. */
export const unitsPerAcquisition = 2;

export type Shards = {
  shards: number;
  writesPerSecond: number;
  acquisitionsPerSecond: number;
  /** How many connections renew their leases, each renewal moving the entry too, before nothing else fits in. */
  publishedConnections: number;
  twoLevelConnections: number;
};

/** Heartbeats of 5 s; a third of an hour. */
const renewedEvery = { publishedSeconds: 5, twoLevelSeconds: 1200 };

export const shardsToCompare = [1, 16, 64];

export function takes(shards: number): Shards {
  const writesPerSecond = shards * unitsPerKey;
  const acquisitionsPerSecond = writesPerSecond / unitsPerAcquisition;
  return {
    shards,
    writesPerSecond,
    acquisitionsPerSecond,
    publishedConnections: acquisitionsPerSecond * renewedEvery.publishedSeconds,
    twoLevelConnections: acquisitionsPerSecond * renewedEvery.twoLevelSeconds,
  };
}
