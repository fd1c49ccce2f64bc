import { z } from 'zod';
import { type Bucket, buckets } from '../shared/connection.ts';
import { parseJson } from '../shared/json.ts';
import type { Item } from '../shared/tables/item.ts';
import { Refusal } from './refusal.ts';

/** Where the next page begins: `from` is the key at which the index left off. */
export type StateCursor = {
  /** What was asked for: a cursor goes on with its own query only. */
  state: Bucket | 'all';
  bucket: Bucket;
  shard: number;
  from?: Item | undefined;
};
export type OwnerCursor = { owner: string; from: Item };
export type Cursor = StateCursor | OwnerCursor;

/** It comes back from outside, so it is checked like any other input. A wrong key is refused by DynamoDB itself. */
const from = z.record(z.string(), z.union([z.strictObject({ S: z.string() }), z.strictObject({ N: z.string() })]));
const shard = z.number().int().nonnegative();
const cursor: z.ZodType<Cursor> = z.union([
  z.strictObject({ owner: z.string(), from }),
  z.strictObject({ state: z.enum([...buckets, 'all']), bucket: z.enum(buckets), shard, from: from.optional() }),
]);

export function encodeCursor(place: Cursor): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

/** @throws Refusal 400 */
export function decodeCursor(text: string): Cursor {
  const parsed = cursor.safeParse(parseJson(Buffer.from(text, 'base64url').toString('utf8')));
  if (parsed.success) return parsed.data;
  throw badCursor('is none that came from here');
}

export function ofState(state: StateCursor['state'], place: Cursor | undefined): StateCursor | undefined {
  if (place === undefined || ('state' in place && place.state === state)) return place;
  throw badCursor('belongs to a list with another state or owner');
}

export function ofOwner(owner: string, place: Cursor | undefined): OwnerCursor | undefined {
  if (place === undefined || ('owner' in place && place.owner === owner)) return place;
  throw badCursor('belongs to a list with another state or owner');
}

export function badCursor(message: string): Refusal {
  return new Refusal(400, 'bad_request', [{ field: 'cursor', message }]);
}
