import { describe, expect, test } from '@jest/globals';
import { numbered } from '../../sources/numbered.ts';

const seqOf = (frame: string) => numbered.seqOf(Buffer.from(frame));

describe('the number of a frame', () => {
  test.each([
    ['{"seq":17}', '17'],
    ['{"seq":"18446744073709551615"}', '18446744073709551615'],
    ['{"seq":9007199254740993}', '9007199254740993'],
    // Another `seq` deeper in the frame is the source's own business, before and after.
    ['{"seq":9007199254740994,"data":{"seq":5}}', '9007199254740994'],
    ['{"data":{"seq":9007199254740999},"seq":9007199254740995}', '9007199254740995'],
    ['{"data":{"seq":5}}', undefined],
    ['{"seq":-1}', undefined],
    ['{"seq":1.5}', undefined],
    ['[1,2]', undefined],
    ['not JSON', undefined],
  ])('%s is %s', (frame, seq) => {
    expect(seqOf(frame)).toBe(seq);
  });
});
