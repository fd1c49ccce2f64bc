import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

/** A stream of chance that is the same for the same seed, on any machine. */
export class Random {
  readonly #generator: ReturnType<typeof xoroshiro128plus>;

  constructor(seed: number) {
    this.#generator = xoroshiro128plus(mixed(seed));
    // Neighbouring seeds begin alike.
    for (let skipped = 0; skipped < 20; skipped++) this.#generator.next();
  }

  /** A stream of its own, so that more chance taken in one part doesn't change what another part gets. */
  fork(): Random {
    return new Random(this.bits());
  }

  /** 0 to 2^32 - 1 */
  bits(): number {
    return this.#generator.next() >>> 0;
  }

  /** In [0, 1). */
  readonly real = (): number => this.bits() / 2 ** 32;

  /** A whole number from `least` to `most`, both included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.real() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.real() < probability;
  }

  pick<T>(list: readonly T[]): T {
    const picked = list[this.int(0, list.length - 1)];
    if (picked === undefined) throw new Error('nothing to pick from');
    return picked;
  }

  /** In proportion to the weights. */
  weighted<K extends string>(weights: Partial<Record<K, number>>): K {
    const entries = Object.entries(weights) as [K, number][];
    const total = entries.reduce((sum, [, weight]) => sum + weight, 0);
    let left = this.real() * total;
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    throw new Error('no weights');
  }

  shuffle<T>(list: T[]): T[] {
    for (let last = list.length - 1; last > 0; last--) {
      const other = this.int(0, last);
      [list[last], list[other]] = [list[other] as T, list[last] as T];
    }
    return list;
  }
}

/** The finalizer of MurmurHash3: each bit of the seed reaches each bit of the result. */
function mixed(seed: number): number {
  let hash = seed | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
