import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { idOf, pkOf } from '../../shared/connection.ts';
import { decodeWakeUp, encodeWakeUp } from '../../shared/wakeup.ts';

test('comes out as it went in, whatever the id', () => {
  fc.assert(
    fc.property(fc.string(), (id) => {
      const wakeUp = { pk: pkOf(id) };
      expect(decodeWakeUp(encodeWakeUp(wakeUp))).toEqual(wakeUp);
      expect(idOf(wakeUp.pk)).toBe(id);
    }),
  );
});

test('says nothing but which connection', () => {
  const item = { pk: 'CONN#a', ws_url: 'wss://feed.example.com/?token=secret' };
  expect(encodeWakeUp(item)).toBe('{"pk":"CONN#a"}');
});

test.each(['', 'hello', '{}', '[]', 'null', '{"pk":7}', '{"pk":"a"}', '{"pk":"CONN#a"'])('%j is none', (text) => {
  expect(decodeWakeUp(text)).toBeUndefined();
});

test('what a later version adds is ignored', () => {
  expect(decodeWakeUp('{"pk":"CONN#a","more":1}')).toEqual({ pk: 'CONN#a' });
});
