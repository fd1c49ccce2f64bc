/** Something that whoever deploys can put right: shown as it is, without a stack. */
export class ImageError extends Error {
  override readonly name = 'ImageError';
}

export function withTail(sentence: string, tail: string[]): string {
  if (tail.length === 0) return sentence;
  return `${sentence}\nThe end of what it said:\n${tail.map((line) => `  ${line}`).join('\n')}`;
}
