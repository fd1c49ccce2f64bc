/**
 * The trace that a request belongs to, as X-Ray hands it on: `Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1`.
 * Source: AWS X-Ray Developer Guide, "Tracing header".
 */
export type TraceContext = { traceId: string; parentId: string | undefined };

/** @returns undefined when there is none, it can't be read, or the request isn't among those that are sampled */
export function readTraceHeader(header: string | undefined): TraceContext | undefined {
  if (header === undefined) return undefined;
  const fields = new Map(
    header.split(';').map((field) => {
      const equals = field.indexOf('=');
      return [field.slice(0, equals).trim(), field.slice(equals + 1).trim()] as const;
    }),
  );
  const traceId = fields.get('Root') ?? '';
  const parentId = fields.get('Parent');
  if (fields.get('Sampled') !== '1' || !/^1-[0-9a-f]{8}-[0-9a-f]{24}$/.test(traceId)) return undefined;
  return { traceId, parentId: parentId !== undefined && /^[0-9a-f]{16}$/.test(parentId) ? parentId : undefined };
}
