import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { partBytes, splitFrame } from '../../worker/frames.ts';

/** Around the places where a frame is cut. */
const near = (bytes: number) => fc.integer({ min: -6, max: 6 }).map((off) => Math.max(0, bytes + off));
const length = (most: number) => fc.oneof(fc.nat({ max: 50 }), near(most), near(2 * most), near(2 * most + 5));
const itemBytes = 350_000;

test('the parts of a text, joined, are the text, whatever character is on the cut', () => {
  const character = fc.constantFrom('x', 'é', '漢', '😀', '👩‍👩‍👧');
  fc.assert(
    fc.property(length(partBytes.text), fc.array(character, { minLength: 1, maxLength: 12 }), (bytes, characters) => {
      const tail = characters.join('');
      const text = 'a'.repeat(Math.max(0, bytes - 8)) + tail + 'b'.repeat(bytes % 3) + tail;
      const parts = splitFrame(Buffer.from(text), false);
      expect(parts.join('') === text).toBe(true);
      expect(parts.some((part) => part.includes('\ufffd') || Buffer.byteLength(part) > itemBytes)).toBe(false);
      expect(parts.length > 1).toBe(Buffer.byteLength(text) > partBytes.text);
    }),
    { numRuns: 300 },
  );
});

test('a text of nothing but long characters is cut between them', () => {
  for (const character of ['é', '漢', '😀']) {
    for (let before = 0; before < 4; before++) {
      const text = 'a'.repeat(before) + character.repeat(partBytes.text / 2 + 3);
      expect(splitFrame(Buffer.from(text), false).join('') === text).toBe(true);
    }
  }
});

test('the parts of a binary frame, decoded one by one and joined, are the frame', () => {
  fc.assert(
    fc.property(length(partBytes.binary), fc.uint8Array({ minLength: 1, maxLength: 16 }), (bytes, seed) => {
      const frame = Buffer.alloc(bytes, Buffer.from(seed));
      const parts = splitFrame(frame, true);
      expect(Buffer.concat(parts.map((part) => Buffer.from(part, 'base64'))).equals(frame)).toBe(true);
      expect(parts.every((part) => part.length <= itemBytes)).toBe(true);
    }),
    { numRuns: 300 },
  );
});

test('an empty frame is one empty part', () => {
  expect([splitFrame(Buffer.alloc(0), false), splitFrame(Buffer.alloc(0), true)]).toEqual([[''], ['']]);
});
