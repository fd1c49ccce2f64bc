import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { z } from 'zod';
import type { Connection } from '../connection.ts';
import { BrokenItemError } from '../errors.ts';

export type Item = Record<string, AttributeValue>;

/** An item of the connections table. Others write to it too (people, scripts), so it is checked like any other input. */
const connectionItem = z.object({
  pk: z.string(),
  desired_state: z.enum(['STARTED', 'STOPPED']),
  ws_url: z.string(),
  source: z
    .object({ name: z.string(), parameters: z.record(z.string(), z.unknown()).optional() })
    .default({ name: 'plain' }),
  generation: z.number().default(1),
  lease_owner: z.string().optional(),
  lease_expires_at_ms: z.number().default(0),
  lease_epoch: z.number().default(0),
  last_seq: z.union([z.string(), z.number()]).transform(String).optional(),
  status: z.enum(['PENDING', 'CONNECTING', 'OPEN', 'RETRYING', 'FAILED', 'CLOSED']).default('PENDING'),
  status_reason: z.string().optional(),
  attempts: z.number().default(0),
  opened_at_ms: z.number().optional(),
  created_at_ms: z.number().default(0),
  updated_at_ms: z.number().default(0),
  event_time_ms: z.number().optional(),
});

/** @throws BrokenItemError naming the item and its attributes, when somebody has written nonsense into the table */
export function toConnection(item: Item): Connection {
  const parsed = connectionItem.safeParse(unmarshall(item));
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
    throw new BrokenItemError(item['pk']?.S ?? '', problems);
  }
  const row = parsed.data;
  return {
    pk: row.pk,
    desiredState: row.desired_state,
    wsUrl: row.ws_url,
    source: row.source,
    generation: row.generation,
    leaseOwner: row.lease_owner,
    leaseExpiresAtMs: row.lease_expires_at_ms,
    leaseEpoch: row.lease_epoch,
    lastSeq: row.last_seq,
    status: row.status,
    statusReason: row.status_reason,
    attempts: row.attempts,
    openedAtMs: row.opened_at_ms,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    eventTimeMs: row.event_time_ms,
  };
}

/** Values of an expression: `{':now': 5}`, without those that are undefined. */
export function values(plain: Record<string, unknown>): Item {
  return marshall(plain, { removeUndefinedValues: true });
}

/**
 * An update expression: `SET` what has a value, `REMOVE` what is undefined. Names go through placeholders, since
 * `status` and `source` are reserved words.
 */
export function updateOf(changes: Record<string, unknown>) {
  const set: string[] = [];
  const remove: string[] = [];
  const names: Record<string, string> = {};
  const plain: Record<string, unknown> = {};
  for (const [attribute, value] of Object.entries(changes)) {
    names[`#${attribute}`] = attribute;
    if (value === undefined) remove.push(`#${attribute}`);
    else {
      set.push(`#${attribute} = :${attribute}`);
      plain[`:${attribute}`] = value;
    }
  }
  const expression = [
    set.length > 0 ? `SET ${set.join(', ')}` : '',
    remove.length > 0 ? `REMOVE ${remove.join(', ')}` : '',
  ];
  return { expression: expression.filter((part) => part !== '').join(' '), names, values: plain };
}
