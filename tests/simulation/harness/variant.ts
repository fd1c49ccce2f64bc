import type { Context } from '../../../worker/context.ts';
import type { Sender } from './client.ts';
import type { Host } from './host.ts';
import type { World } from './world.ts';

export type Place = { world: World; host: Host };

/**
 * A protocol that is broken on purpose, from outside of the product's code: by what is put between it and the store, by
 * other parts in a worker's context, or by replacing methods for as long as one simulation runs.
 */
export type Variant = {
  name: string;
  /** What is wrong with it, and what follows from that. */
  flaw: string;
  sender?: (send: Sender, place: Place) => Sender;
  context?: (context: Context, place: Place) => Context;
  /** @returns what undoes it */
  patch?: () => () => void;
};
