import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { describe, expect, test } from '@jest/globals';
import { counterKey, partKey, seqKey, unnumberedKey } from '../../shared/sequence.ts';
import { type Message, messagesTable } from '../../shared/tables/messages.ts';
import { type GetStore, now } from './contract.ts';

const { signal } = new AbortController();
const always = () => true;

function message(pk: string, sk: string, more: Partial<Message> = {}): Message {
  const same = { binary: false, part: 0, parts: 1, timestampMs: now, workerId: 'worker-1', epoch: 3 };
  return { pk, sk, prev: undefined, data: `data of ${sk}`, ...same, ...more };
}

export function messagesContract(getStore: GetStore): void {
  const table = () => messagesTable(getStore().dynamodb, getStore().tables.messages, { ttlMs: 86_400_000 });
  const newest = async (pk: string, most: number) => {
    const { keys, truncated } = await table().newestNumbered(pk, undefined, most);
    return { keys: keys.map(({ sk }) => sk), truncated };
  };

  describe('messages', () => {
    test('stores each attribute', async () => {
      const sk = seqKey('17');
      await table().store(
        [message('CONN#stored', sk, { prev: seqKey('16'), binary: true, data: 'AAE=', parts: 2 })],
        always,
        signal,
      );
      const Key = { pk: { S: 'CONN#stored' }, sk: { S: sk } };
      const { Item: item } = await getStore().dynamodb.send(
        new GetItemCommand({ TableName: getStore().tables.messages, Key }),
      );
      expect(item).toEqual({
        ...Key,
        prev_sk: { S: seqKey('16') },
        message_data: { S: 'AAE=' },
        encoding: { S: 'base64' },
        part: { N: '0' },
        parts: { N: '2' },
        timestamp_ms: { N: String(now) },
        worker_id: { S: 'worker-1' },
        lease_epoch: { N: '3' },
        expires_at: { N: String((now + 86_400_000) / 1000) },
      });
    });

    test('the same message twice is one item', async () => {
      const batch = ['1', '2', '3'].map((seq) => message('CONN#twice', seqKey(seq)));
      expect(await table().store(batch, always, signal)).toEqual([]);
      expect(await table().store(batch, always, signal)).toEqual([]);
      expect(await newest('CONN#twice', 10)).toEqual({ keys: ['1', '2', '3'].map(seqKey), truncated: false });
    });

    test('what may not be written any more when the request is ready is not sent', async () => {
      const batch = [message('CONN#too-late', seqKey('1'))];
      let asked = 0;
      const never = () => ++asked < 0;
      await expect(table().store(batch, never, signal)).rejects.toThrow('not sent');
      expect([asked, await newest('CONN#too-late', 10)]).toEqual([1, { keys: [], truncated: false }]);
    });

    test('the newest numbered ones, oldest first, with parts and with frames that have no number', async () => {
      const nine = seqKey('9');
      const ten = seqKey('10');
      const keys = [nine, unnumberedKey('9', 4, 1), ten, partKey(ten, 1), seqKey('11')];
      const parts = { part: 0, parts: 2 };
      const batch = [
        message('CONN#newest', keys[0] ?? ''),
        message('CONN#newest', keys[1] ?? '', { prev: keys[0] }),
        message('CONN#newest', ten, { prev: keys[1], ...parts }),
        message('CONN#newest', partKey(ten, 1), { prev: ten, ...parts, part: 1 }),
        message('CONN#newest', keys[4] ?? '', { prev: keys[3] }),
        message('CONN#newest-other', seqKey('99')),
      ];
      await table().store(batch.reverse(), always, signal);
      expect(await newest('CONN#newest', 100)).toEqual({ keys, truncated: false });
      expect(await newest('CONN#newest', 2)).toEqual({ keys: keys.slice(3), truncated: true });
      const { keys: rows } = await table().newestNumbered('CONN#newest', undefined, 100);
      expect(rows.map(({ prev }) => prev)).toEqual([undefined, ...keys.slice(0, 4)]);
      expect(rows.map(({ more }) => more)).toEqual([false, false, true, false, false]);
    });

    test('frames without a number don’t count, however many owners have stored theirs', async () => {
      const [five, six] = [seqKey('5'), seqKey('6')];
      const unnumbered = Array.from({ length: 8 }, (_, epoch) => unnumberedKey('6', epoch, 1));
      await table().store(
        [five, six, ...unnumbered].map((sk) => message('CONN#beats', sk)),
        always,
        signal,
      );
      expect((await newest('CONN#beats', 2)).keys).toEqual([five, six, ...unnumbered]);
    });

    test('back to what is known, and no further', async () => {
      await table().store(
        ['1', '2', '3', '4'].map((seq) => message('CONN#known', seqKey(seq))),
        always,
        signal,
      );
      const { keys, truncated } = await table().newestNumbered('CONN#known', '3', 10);
      expect([keys.map(({ sk }) => sk), truncated]).toEqual([[seqKey('3'), seqKey('4')], false]);
    });

    test('what the source does not number is not taken for a number', async () => {
      await table().store([message('CONN#unnumbered', counterKey(1_790_000_000, 1))], always, signal);
      expect(await newest('CONN#unnumbered', 10)).toEqual({ keys: [], truncated: false });
    });
  });
}
