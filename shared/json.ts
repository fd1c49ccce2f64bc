/** What came from outside, to be checked with a schema next. @returns undefined when the text isn't JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (fault) {
    if (fault instanceof SyntaxError) return undefined;
    throw fault;
  }
}
