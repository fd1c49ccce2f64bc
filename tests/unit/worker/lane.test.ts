import { describe, expect, jest, test } from '@jest/globals';
import { type Entry, Lane, type LaneOwner, window } from '../../../worker/lane.ts';
import { numberedFrame, plainFrame } from '../../support/sink-parts.ts';

/** A lane whose owner keeps what it is given. */
function lane(given: { position?: string; mayWrite?: () => boolean } = {}) {
  const submitted: Entry[] = [];
  const owner = { bytes: 0, isFull: false };
  const laneOwner: LaneOwner = {
    submit: (entry) => void submitted.push(entry),
    weigh: (bytes) => {
      owner.bytes += bytes;
    },
    full: () => owner.isFull,
    flushSoon: () => {},
    closed: () => {},
  };
  const { position, mayWrite = () => true } = given;
  const made = new Lane(laneOwner, { pk: 'CONN#a', workerId: 'w-me', epoch: 7, position, mayWrite });
  const entry = (index: number): Entry => {
    const found = submitted[index];
    if (!found) throw new Error(`nothing was submitted at ${index}`);
    return found;
  };
  return { lane: made, submitted, entry, owner };
}

const keysOf = (entries: Entry[]) => entries.map(({ message }) => message.sk);

describe('the position', () => {
  test('follows what is stored, in order, whatever order the answers have', () => {
    const { lane: a, entry } = lane({ position: '4' });
    for (const seq of [5, 6, 8]) a.push(numberedFrame(seq));
    expect([a.position, a.received]).toEqual(['4', '8']);
    a.stored(entry(2));
    expect(a.position).toBe('4');
    a.stored(entry(0));
    expect(a.position).toBe('5');
    a.stored(entry(1));
    expect(a.position).toBe('8');
  });

  test('passes a frame only when its last part is stored', () => {
    const { lane: a, entry, submitted } = lane();
    a.push(numberedFrame(1, 'x'.repeat(400_000)));
    a.push(numberedFrame(2));
    expect(submitted).toHaveLength(3);
    a.stored(entry(2));
    a.stored(entry(0));
    expect(a.position).toBeUndefined();
    a.stored(entry(1));
    expect(a.position).toBe('2');
  });

  test('stays where it is for frames without a number', () => {
    const { lane: a, entry } = lane({ position: '9' });
    a.push({ ...numberedFrame(0, 'hello'), seq: undefined });
    a.stored(entry(0));
    expect(a.position).toBe('9');
  });

  test('doesn’t move any more once the lane is closed', () => {
    const { lane: a, entry } = lane();
    a.push(numberedFrame(1));
    a.close();
    a.stored(entry(0));
    expect(a.position).toBeUndefined();
  });
});

describe('a message', () => {
  test('names its predecessor, and its key sorts by its number', () => {
    const { lane: a, submitted } = lane({ position: '41' });
    a.push(numberedFrame(42));
    a.push({ ...numberedFrame(0, 'hi'), seq: undefined });
    a.push(numberedFrame('18446744073709551615'));
    expect(submitted.map(({ message }) => [message.prev, message.sk])).toEqual([
      ['00000000000000000041', '00000000000000000042'],
      ['00000000000000000042', '00000000000000000042#u000000000007#000000000000'],
      ['00000000000000000042#u000000000007#000000000000', '18446744073709551615'],
    ]);
    expect(keysOf(submitted)).toEqual(keysOf(submitted).toSorted());
  });

  test('of a source without numbers is counted within its epoch', () => {
    const { lane: a, submitted } = lane();
    a.push(plainFrame('a'));
    a.push(plainFrame('a'));
    expect(keysOf(submitted)).toEqual(['000000000007#000000000000', '000000000007#000000000001']);
  });

  test('too large for an item is stored in parts that say how many they are', () => {
    const { lane: a, submitted } = lane();
    const text = 'é'.repeat(350_000);
    a.push(numberedFrame(3, text));
    for (let index = 0; index < submitted.length; index++) a.stored(submitted[index] as Entry);
    expect(submitted.map(({ message }) => [message.sk, message.part, message.parts])).toEqual([
      ['00000000000000000003', 0, 3],
      ['00000000000000000003#p00001', 1, 3],
      ['00000000000000000003#p00002', 2, 3],
    ]);
    expect(submitted.map(({ message }) => message.data).join('')).toBe(text);
    expect(a.position).toBe('3');
  });

  test('that was received before is not stored again', () => {
    const { lane: a, submitted } = lane({ position: '10' });
    expect([9, 10, 11, 11, 5].map((seq) => a.push(numberedFrame(seq)))).toEqual([
      'repeated',
      'repeated',
      'taken',
      'repeated',
      'repeated',
    ]);
    expect(submitted).toHaveLength(1);
  });
});

describe('the window', () => {
  test('lets no more than its number of messages be on their way, in order', () => {
    const { lane: a, submitted, entry } = lane();
    for (let seq = 1; seq <= window.entries + 40; seq++) a.push(numberedFrame(seq));
    expect(submitted).toHaveLength(window.entries);
    // What is stored behind the head makes no room: recovery would have to look further back.
    for (let index = 1; index < window.entries; index++) a.stored(entry(index));
    expect(submitted).toHaveLength(window.entries);
    a.stored(entry(0));
    expect(submitted).toHaveLength(window.entries + 40);
    expect(submitted.map(({ seq }) => seq)).toEqual(submitted.map((_, index) => String(index + 1)));
  });

  test('counts bytes as the table does, not characters', () => {
    const { lane: a, submitted } = lane();
    for (let seq = 1; seq <= 10; seq++) a.push(numberedFrame(seq, '漢'.repeat(50_000)));
    const bytes = submitted.reduce((sum, { message }) => sum + Buffer.byteLength(message.data), 0);
    expect(bytes).toBeLessThanOrEqual(window.bytes);
    expect(submitted).toHaveLength(3);
  });

  test('takes one message that is larger than itself', () => {
    const { lane: a, submitted, entry } = lane();
    a.push(numberedFrame(1, 'x'.repeat(290_000)));
    a.push(numberedFrame(2, 'x'.repeat(290_000)));
    expect(submitted).toHaveLength(1);
    a.stored(entry(0));
    expect(submitted).toHaveLength(2);
  });
});

describe('a full lane', () => {
  test('asks for a pause, and says when there is room again', () => {
    const { lane: a, submitted } = lane();
    a.onRoom = jest.fn();
    let seq = 0;
    while (!a.full()) a.push(numberedFrame(++seq, 'x'.repeat(100_000)));
    expect(seq).toBe(10);
    for (let index = 0; index < 4; index++) a.stored(submitted[index] as Entry);
    expect(a.onRoom).not.toHaveBeenCalled();
    expect(a.full()).toBe(true);
    a.stored(submitted[4] as Entry);
    a.stored(submitted[5] as Entry);
    expect(a.onRoom).toHaveBeenCalledTimes(1);
    expect(a.full()).toBe(false);
  });

  test('is also one whose sink is full', () => {
    const { lane: a, owner, entry } = lane();
    a.onRoom = jest.fn();
    a.push(numberedFrame(1));
    owner.isFull = true;
    expect(a.full()).toBe(true);
    a.stored(entry(0));
    expect(a.onRoom).not.toHaveBeenCalled();
    owner.isFull = false;
    a.resumeIfRoom();
    expect(a.onRoom).toHaveBeenCalledTimes(1);
  });
});

describe('closing', () => {
  test('gives back what it weighs, takes nothing more, and may write nothing', () => {
    const { lane: a, owner, submitted, entry } = lane();
    for (let seq = 1; seq <= 300; seq++) a.push(numberedFrame(seq));
    expect(owner.bytes).toBeGreaterThan(0);
    a.close();
    a.close();
    a.push(numberedFrame(301));
    a.stored(entry(0));
    expect([owner.bytes, submitted.length, a.mayWrite()]).toEqual([0, window.entries, false]);
  });

  test('settles a flush; so does the last message', async () => {
    const { lane: a, entry } = lane();
    const settledFlushes: string[] = [];
    const note = (name: string) => () => void settledFlushes.push(name);
    await a.flush().then(note('empty'));
    a.push(numberedFrame(1));
    a.push(numberedFrame(2));
    const both = a.flush().then(note('both'));
    a.stored(entry(1));
    await Promise.resolve();
    expect(settledFlushes).toEqual(['empty']);
    a.stored(entry(0));
    await both;
    a.push(numberedFrame(3));
    const cut = a.flush().then(note('cut'));
    a.close();
    await cut;
    expect(settledFlushes).toEqual(['empty', 'both', 'cut']);
  });

  test('because of a message that can’t be stored says so once', () => {
    const { lane: a } = lane();
    a.onFailure = jest.fn();
    const fault = new Error('too large');
    a.fail(fault);
    a.fail(fault);
    expect(a.onFailure).toHaveBeenCalledTimes(1);
    expect(a.mayWrite()).toBe(false);
  });
});
