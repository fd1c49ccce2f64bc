/** The shapes of the deployed tables, from the file that they are deployed from, so that the two can't drift apart. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import type { IndexShape } from './units.ts';

export type TableShape = { keys: string[]; indexes: (IndexShape & { hash: string; sort: string | undefined })[] };

export const tableNames = { connections: 'connections', workers: 'workers', messages: 'messages' };

const keySchema = z
  .array(z.object({ AttributeName: z.string() }))
  .transform((keys) => keys.map((key) => key.AttributeName));
const table = z.object({
  Properties: z.object({
    KeySchema: keySchema,
    GlobalSecondaryIndexes: z
      .array(
        z.object({
          IndexName: z.string(),
          KeySchema: keySchema,
          Projection: z.object({ ProjectionType: z.string(), NonKeyAttributes: z.array(z.string()).default([]) }),
        }),
      )
      .default([]),
  }),
});
const file = z.object({ Resources: z.object({ ConnectionsTable: table, WorkersTable: table, MessagesTable: table }) });

export function deployedTables(): Record<string, TableShape> {
  const text = readFileSync(join(import.meta.dirname, '../../deploy/tables.yml'), 'utf8');
  // CloudFormation's own tags stand only where nothing is read here.
  const { Resources } = file.parse(parse(text, { logLevel: 'silent' }));
  return {
    [tableNames.connections]: shapeOf(Resources.ConnectionsTable),
    [tableNames.workers]: shapeOf(Resources.WorkersTable),
    [tableNames.messages]: shapeOf(Resources.MessagesTable),
  };
}

function shapeOf({ Properties }: z.infer<typeof table>): TableShape {
  const keys = Properties.KeySchema;
  const indexes = Properties.GlobalSecondaryIndexes.map(({ IndexName, KeySchema, Projection }) => {
    if (Projection.ProjectionType === 'ALL') throw new Error(`${IndexName}: no index here holds whole items`);
    const [hash = '', sort] = KeySchema;
    const attributes = [...new Set([...KeySchema, ...keys, ...Projection.NonKeyAttributes])];
    return { name: IndexName, keys: KeySchema, attributes, hash, sort };
  });
  return { keys, indexes };
}
