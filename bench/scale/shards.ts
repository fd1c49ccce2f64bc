/** What the index of orphans takes, by the number of keys that it is spread over. */
import { unitsPerKey } from '../world/capacity.ts';

/** An acquisition moves the entry: a delete and a put under the same key. */
export const unitsPerAcquisition = 2;

export type Shards = { shards: number; writesPerSecond: number; acquisitionsPerSecond: number };

export const shardsToCompare = [1, 16, 64];

export function takes(shards: number): Shards {
  const writesPerSecond = shards * unitsPerKey;
  return { shards, writesPerSecond, acquisitionsPerSecond: writesPerSecond / unitsPerAcquisition };
}
