import type { Config } from '../../../shared/config.ts';
import type { Sender } from './client.ts';
import type { Host } from './host.ts';
import type { World } from './world.ts';

export type Place = { world: World; host: Host };

/**
 * A protocol that is broken on purpose, from outside of the product's code: by what is put between it and the store, by
 * another configuration, or by replacing methods for as long as one simulation runs.
 */
export type Variant = {
  name: string;
  /** What is wrong with it, and what follows from that. */
  flaw: string;
  /** Only there is it broken. */
  workerLease?: boolean;
  sender?: (send: Sender, place: Place) => Sender;
  config?: (config: Config) => Config;
  /** @param fresh the id that it would take */
  newId?: (fresh: string, place: Place) => string;
  /** @returns what undoes it */
  patch?: () => () => void;
};
