import { z } from 'zod';
import { parseJson } from '../shared/json.ts';
import { type Seq, toSeq } from '../shared/sequence.ts';
import { positionPlaceholder, type SourceProfile } from '../shared/source.ts';
import { closeVerdict, refusalVerdict, verdictParameters } from './verdicts.ts';

/** JSON frames with a number in `seq`; `{last_seq}` in the URL becomes the last number that we have, 0 at first. */
export const numbered: SourceProfile = {
  name: 'numbered',
  parameters: verdictParameters,
  resumes: true,
  problemWith: () => undefined,
  url: (wsUrl, position) => wsUrl.replaceAll(positionPlaceholder, position ?? '0'),
  seqOf,
  onClose: closeVerdict,
  onRefused: refusalVerdict,
};

const numberedFrame = z.object({ seq: z.union([z.string(), z.number()]) });

function seqOf(frame: Buffer): Seq | undefined {
  const text = frame.toString('utf8');
  const seq = numberedFrame.safeParse(parseJson(text)).data?.seq;
  if (typeof seq === 'number' && !Number.isSafeInteger(seq)) return exactSeq(text);
  return toSeq(seq);
}

/**
 * A number over 2^53 has lost its last digits in `JSON.parse`; the reviver is shown the digits as they came. It is shown
 * every `seq` at any depth, so they are kept by the object that holds them, and only the frame's own counts.
 */
function exactSeq(text: string): Seq | undefined {
  const digits = new Map<unknown, string | undefined>();
  function keepDigits(this: unknown, key: string, value: unknown, context: { source?: string }): unknown {
    if (key === 'seq') digits.set(this, context.source);
    return value;
  }
  const frame: unknown = JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown);
  return toSeq(digits.get(frame));
}
