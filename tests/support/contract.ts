/** The contract of shared/tables/, for whatever speaks DynamoDB's language. Each of its files is one table's. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { TableNames } from '../../local/aws.ts';
import { type Connection, decideStart, decideStop, pkOf, type SourceChoice } from '../../shared/connection.ts';
import { type ConnectionsTable, connectionsTable } from '../../shared/tables/connections.ts';
import { type LeasesTable, leasesTable } from '../../shared/tables/leases.ts';

export type Store = {
  dynamodb: DynamoDBClient;
  tables: TableNames;
  /** Checks a condition and writes in two steps, between which another request may come. DynamoDB never does. */
  torn?: boolean;
};

/** Called within the tests: the store is there only after `beforeAll`. */
export type GetStore = () => Store;

export const shards = 4;
/** Some time, in whole milliseconds. No test waits for it to pass. */
export const now = Date.UTC(2030, 0, 1);
export const wsUrl = 'wss://feed.example.com/';

export type Tables = { connections: ConnectionsTable; leases: LeasesTable };

export function tablesOf({ dynamodb, tables }: Store): Tables {
  return {
    connections: connectionsTable(dynamodb, tables.connections, { shards, stoppedTtlMs: 86_400_000 }),
    leases: leasesTable(dynamodb, tables.connections, { shards }),
  };
}

/** Rivals, at the same time as far as this store can be trusted to tell them apart. */
export async function atOnce<T>({ torn = false }: Store, rivals: (() => Promise<T>)[]): Promise<T[]> {
  if (!torn) return Promise.all(rivals.map((rival) => rival()));
  const outcomes: T[] = [];
  for (const rival of rivals) outcomes.push(await rival());
  return outcomes;
}

export type StartWith = { url?: string; source?: SourceChoice; eventTimeMs?: number; at?: number };

/** As POST /events does it, without the loop. */
export async function start({ connections }: Tables, id: string, given: StartWith = {}): Promise<string> {
  const pk = pkOf(id);
  const seen = await connections.get(pk);
  const { url = wsUrl, source = { name: 'plain' }, eventTimeMs, at = now } = given;
  const decision = decideStart(seen, { wsUrl: url, source, eventTimeMs });
  if (decision.outcome === 'changed') await connections.want(pk, decision.intent, seen, at);
  return pk;
}

export async function stop({ connections }: Tables, id: string, at = now): Promise<string> {
  const pk = pkOf(id);
  const seen = await connections.get(pk);
  const decision = decideStop(seen, {});
  if (decision.outcome === 'changed') await connections.want(pk, decision.intent, seen, at);
  return pk;
}

/** @throws when it is refused */
export async function acquire(
  { leases }: Tables,
  pk: string,
  owner: string,
  untilMs = now + 20_000,
  at = now,
): Promise<Connection> {
  const acquired = await leases.acquire(pk, owner, untilMs, at);
  if (acquired === 'refused') throw new Error(`${owner} did not get ${pk}`);
  const { before: _before, ...connection } = acquired;
  return connection;
}

export const claimOf = ({ pk, leaseOwner, leaseEpoch }: Connection) => ({
  pk,
  owner: leaseOwner ?? '',
  epoch: leaseEpoch,
});
