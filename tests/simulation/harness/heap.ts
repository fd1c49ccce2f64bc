/** What is taken out first is the smallest by time, then by order. */
export type Timed = { atMs: number; order: number };

export class Heap<T extends Timed> {
  readonly #nodes: T[] = [];

  get size(): number {
    return this.#nodes.length;
  }

  get first(): T | undefined {
    return this.#nodes[0];
  }

  push(node: T): void {
    const nodes = this.#nodes;
    let at = nodes.length;
    nodes.push(node);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = nodes[parent] as T;
      if (!before(node, above)) break;
      nodes[at] = above;
      at = parent;
    }
    nodes[at] = node;
  }

  pop(): T | undefined {
    const nodes = this.#nodes;
    const top = nodes[0];
    const last = nodes.pop();
    if (last === undefined || nodes.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= nodes.length) break;
      const right = child + 1;
      if (right < nodes.length && before(nodes[right] as T, nodes[child] as T)) child = right;
      const below = nodes[child] as T;
      if (!before(below, last)) break;
      nodes[at] = below;
      at = child;
    }
    nodes[at] = last;
    return top;
  }
}

function before(a: Timed, b: Timed): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
