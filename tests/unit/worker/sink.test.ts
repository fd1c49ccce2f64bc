import { describe, expect, jest, test } from '@jest/globals';
import { batchSize } from '../../../shared/tables/messages.ts';
import { validationFault } from '../../support/messages-table.ts';
import { numberedFrame, sinkOver } from '../../support/sink-parts.ts';
import { settled } from '../../support/virtual-clock.ts';

const seqs = (messages: { sk: string }[]) => messages.map(({ sk }) => Number(sk.slice(0, 20)));

describe('a batch', () => {
  test('is sent when it is full, or a moment after its first message', async () => {
    const { open, messages, clock } = sinkOver();
    const a = open({ pk: 'CONN#a' });
    const b = open({ pk: 'CONN#b' });
    for (let seq = 1; seq <= batchSize; seq++) (seq % 2 ? a : b).push(numberedFrame(seq));
    a.push(numberedFrame(99));
    await settled();
    expect(messages.calls.map((call) => call.messages.length)).toEqual([batchSize]);
    await clock.advance(49);
    expect(messages.calls).toHaveLength(1);
    await clock.advance(1);
    expect(messages.calls.map((call) => call.messages.length)).toEqual([batchSize, 1]);
  });

  test('is sent at once for a flush', async () => {
    const { open, messages } = sinkOver();
    const a = open();
    a.push(numberedFrame(1));
    const flushed = a.flush();
    await settled();
    messages.calls[0]?.answer();
    await flushed;
    expect(a.position).toBe('1');
  });

  test('is tried again with what DynamoDB left out, and only that', async () => {
    const { open, sent, messages } = sinkOver();
    const a = open();
    for (const seq of [1, 2, 3, 4]) a.push(numberedFrame(seq));
    const first = await sent();
    first.answer(first.messages.filter((_, index) => index % 2 === 1));
    await settled();
    expect(a.position).toBe('1');
    const second = await sent();
    expect(seqs(second.messages)).toEqual([2, 4]);
    second.answer();
    await settled();
    expect([a.position, messages.stored.size]).toEqual(['4', 4]);
  });

  test('whose answer is lost is sent again, after a pause, and lands on the same items', async () => {
    const { open, sent, clock, messages } = sinkOver();
    const a = open();
    a.push(numberedFrame(1));
    (await sent()).lose(() => true);
    await clock.advance(49);
    expect([a.position, messages.calls.length]).toEqual([undefined, 0]);
    (await sent()).answer();
    await settled();
    expect([a.position, messages.stored.size]).toEqual(['1', 1]);
  });
});

describe('who may not write any more', () => {
  test('has nothing sent, neither first nor again', async () => {
    const { open, sent, clock, messages } = sinkOver();
    let valid = true;
    const a = open({ pk: 'CONN#a', mayWrite: () => valid });
    const b = open({ pk: 'CONN#b' });
    a.push(numberedFrame(1));
    b.push(numberedFrame(1));
    (await sent()).lose();
    valid = false;
    a.push(numberedFrame(2));
    const again = await sent();
    expect(again.messages.map(({ pk }) => pk)).toEqual(['CONN#b']);
    again.answer();
    await clock.advance(60_000);
    expect(messages.calls).toEqual([]);
    expect([...messages.stored.keys()]).toEqual(['CONN#b|00000000000000000001']);
  });

  test('is asked right before a batch is sent that had to wait for a writer', async () => {
    const { open, messages } = sinkOver();
    let valid = true;
    const a = open({ mayWrite: () => valid });
    for (let seq = 1; seq <= 10 * batchSize; seq++) a.push(numberedFrame(seq));
    await settled();
    const underway = messages.calls.length;
    expect(underway).toBeLessThan(10);
    valid = false;
    messages.calls[0]?.answer();
    await settled();
    expect(messages.calls).toHaveLength(underway - 1);
  });

  test('a closed lane has what it dropped counted', async () => {
    const { open, metrics, messages, clock } = sinkOver();
    const a = open();
    for (let seq = 1; seq <= 30; seq++) a.push(numberedFrame(seq));
    await settled();
    messages.calls[0]?.answer();
    await settled();
    a.close();
    await clock.advance(5_000);
    expect(metrics.of('MessagesDiscarded')).toBe(5);
    expect(messages.calls).toEqual([]);
  });
});

describe('a message that the table refuses', () => {
  test('fails its own lane, and the others in its batch are stored', async () => {
    const { open, sent, messages } = sinkOver();
    const lanes = ['CONN#a', 'CONN#b', 'CONN#c'].map((pk) => open({ pk }));
    const failures = lanes.map((lane) => {
      const failed = jest.fn();
      lane.onFailure = failed;
      return failed;
    });
    for (const lane of lanes) lane.push(numberedFrame(1));
    lanes[1]?.push(numberedFrame(2));
    (await sent()).refuse(validationFault());
    await settled();
    for (let call = messages.calls[0]; call; call = messages.calls[0]) {
      const bad = call.messages.some(({ pk }) => pk === 'CONN#b');
      if (bad) call.refuse(validationFault());
      else call.answer();
      await settled();
    }
    expect(failures.map((failed) => failed.mock.calls.length)).toEqual([0, 1, 0]);
    expect([...messages.stored.values()].map(({ pk }) => pk)).toEqual(['CONN#a', 'CONN#c']);
    expect(lanes.map((lane) => lane.position)).toEqual(['1', undefined, '1']);
  });
});

describe('the sink as a whole', () => {
  test('pauses all lanes when it is full, and lets all go on when half of it is stored', async () => {
    const { open, storeAll } = sinkOver({ bufferBytes: 100_000 });
    const lanes = ['CONN#a', 'CONN#b'].map((pk) => open({ pk }));
    const rooms = lanes.map((lane) => {
      const room = jest.fn();
      lane.onRoom = room;
      return room;
    });
    lanes[0]?.push(numberedFrame(1, 'x'.repeat(100_000)));
    expect(lanes.map((lane) => lane.full())).toEqual([true, true]);
    await storeAll();
    expect(rooms.map((room) => room.mock.calls.length)).toEqual([1, 1]);
    expect(lanes.map((lane) => lane.full())).toEqual([false, false]);
  });

  test('forgets what a closed lane weighed', () => {
    const { open } = sinkOver({ bufferBytes: 100_000 });
    const a = open({ pk: 'CONN#a' });
    const b = open({ pk: 'CONN#b' });
    const room = jest.fn();
    b.onRoom = room;
    a.push(numberedFrame(1, 'x'.repeat(100_000)));
    expect(b.full()).toBe(true);
    a.close();
    expect(room).toHaveBeenCalledTimes(1);
  });
});
