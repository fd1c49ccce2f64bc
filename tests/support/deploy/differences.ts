/** How two values differ: the path of each difference, e.g. `functions/holdfast-test-events/memory`. */
export function differences(before: unknown, after: unknown, path = ''): string[] {
  if (Object.is(before, after)) return [];
  if (!isRecord(before) || !isRecord(after)) return [path];
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return keys.flatMap((key) => differences(before[key], after[key], path === '' ? key : `${path}/${key}`));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
