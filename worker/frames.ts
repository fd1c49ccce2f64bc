/**
 * DynamoDB takes items of up to 400 KB, names and numbers included, and base64 makes four bytes of three. A part stays
 * well under that, so that recovery's single page holds a whole window and one part more.
 */
export const partBytes = { text: 300_000, binary: 225_000 };

/**
 * A frame as it is stored: text as it came, binary as base64, cut into as many parts as it needs. Joined in order, the
 * parts (base64 decoded one by one) are the frame.
 */
export function splitFrame(data: Buffer, binary: boolean): string[] {
  const most = binary ? partBytes.binary : partBytes.text;
  if (data.length <= most) return [data.toString(binary ? 'base64' : 'utf8')];
  const parts: string[] = [];
  for (let start = 0; start < data.length; ) {
    const end = binary ? start + most : characterBoundary(data, start + most);
    parts.push(data.toString(binary ? 'base64' : 'utf8', start, end));
    start = end;
  }
  return parts;
}

/** The nearest place at or before `end` that isn't inside a UTF-8 character: its later bytes begin with the bits 10. */
function characterBoundary(data: Buffer, end: number): number {
  let boundary = Math.min(end, data.length);
  while (boundary < data.length && ((data[boundary] ?? 0) & 0xc0) === 0x80) boundary--;
  return boundary;
}
