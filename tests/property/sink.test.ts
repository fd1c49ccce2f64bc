import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { completeUpTo, isLater, type Seq, seqKey } from '../../shared/sequence.ts';
import type { Lane } from '../../worker/lane.ts';
import { window } from '../../worker/lane.ts';
import { numberedFrame, sinkOver } from '../support/sink-parts.ts';
import { settled } from '../support/virtual-clock.ts';

const lanes = 2;
const lane = fc.nat({ max: lanes - 1 });
const pick = fc.nat({ max: 1_000 });
const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('push' as const),
      lane,
      count: fc.constantFrom(1, 3, 30, 200),
      // Numbers may be left out, and characters may have three bytes.
      step: fc.constantFrom(1, 1, 2),
      size: fc.constantFrom(1, 1, 1, 20_000, 120_000, 250_000),
      character: fc.constantFrom('x', '漢'),
      numbered: fc.constantFrom(true, true, true, false),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('answer' as const), call: pick }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('leave' as const), call: pick, every: fc.integer({ min: 1, max: 5 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('lose' as const), call: pick, every: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 2_000 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('remember' as const), lane }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('revoke' as const), lane }) },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

class Connection {
  readonly pk: string;
  readonly lane: Lane;
  readonly pushed: Seq[] = [];
  mayWrite = true;
  full = false;
  next = 1;
  /** A position that a renewal wrote into the item some time ago. */
  known: Seq | undefined;

  constructor(pk: string, open: ReturnType<typeof sinkOver>['open']) {
    this.pk = pk;
    this.lane = open({ pk, mayWrite: () => this.mayWrite });
    this.lane.onRoom = () => {
      this.full = false;
    };
  }
}

async function run(commands: Command[]) {
  const sink = sinkOver();
  const { messages, clock } = sink;
  const connections = Array.from({ length: lanes }, (_, index) => new Connection(`CONN#${index}`, sink.open));
  const byIndex = (index: number): Connection => connections[index] as Connection;
  const sent = new Map(connections.map(({ pk }) => [pk, new Set<string>()]));
  messages.onStore = (request) => {
    for (const { pk, sk } of request) {
      sent.get(pk)?.add(sk);
      expect(connections.find((connection) => connection.pk === pk)?.mayWrite).toBe(true);
    }
  };

  const push = ({ count, step, size, character, numbered }: Extract<Command, { do: 'push' }>, to: Connection) => {
    // A source goes on sending what is on its way already, but a paused socket takes no more.
    for (let pushed = 0; pushed < count && !to.full; pushed++) {
      const text = character.repeat(size);
      const frame = numberedFrame(to.next, text);
      if (numbered) {
        to.pushed.push(frame.seq);
        to.next += step;
        to.lane.push(frame);
      } else to.lane.push({ ...frame, seq: undefined });
      to.full = to.lane.full();
    }
  };

  /** What should be in the table if all up to `position` is stored, and isn't. */
  const holes = ({ pk, pushed }: Connection, position: Seq | undefined): string[] => {
    if (position === undefined) return [];
    // A frame without a number has the one before it in its key, and comes after it.
    const sentUpTo = [...(sent.get(pk) ?? [])].filter((sk) => sk < `${seqKey(position)}#u`);
    const pushedUpTo = pushed.filter((seq) => !isLater(seq, position)).map(seqKey);
    return [...sentUpTo, ...pushedUpTo].filter((sk) => !messages.stored.has(`${pk}|${sk}`));
  };

  const check = () => {
    for (const connection of connections) {
      const { pk, known } = connection;
      expect(holes(connection, connection.lane.position)).toEqual([]);
      // Whoever takes over now must neither step over a hole nor fall behind what is known.
      const { keys, truncated } = messages.newest(pk, window.entries + 1);
      const recovered = completeUpTo(keys, known, truncated);
      expect(holes(connection, recovered)).toEqual([]);
      expect(known === undefined || (recovered !== undefined && !isLater(known, recovered))).toBe(true);
    }
  };

  for (const one of commands) {
    const call = 'call' in one ? messages.calls[one.call % Math.max(1, messages.calls.length)] : undefined;
    if (one.do === 'push') push(one, byIndex(one.lane));
    if (one.do === 'answer') call?.answer();
    if (one.do === 'leave') call?.answer(call.messages.filter((_, index) => index % one.every === 0));
    if (one.do === 'lose') call?.lose((message) => (call.messages.indexOf(message) + 1) % one.every === 0);
    if (one.do === 'wait') await clock.advance(one.ms);
    if (one.do === 'remember') byIndex(one.lane).known = byIndex(one.lane).lane.position;
    if (one.do === 'revoke' && one.lane === 1) byIndex(1).mayWrite = false;
    await settled();
    check();
  }

  await sink.storeAll();
  check();
  for (const { mayWrite, lane: checked, pushed, full } of connections.filter((connection) => connection.mayWrite)) {
    expect([mayWrite, checked.position, full]).toEqual([true, pushed.at(-1), false]);
    await checked.flush();
  }
}

test('whatever the table does, no position passes a message that isn’t stored, nobody writes who may not, and all is stored in the end', async () => {
  await fc.assert(fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 40 }), run), { numRuns: 400 });
}, 60_000);
