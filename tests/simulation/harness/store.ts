import {
  BatchGetItemCommand,
  type BatchGetItemCommandInput,
  BatchWriteItemCommand,
  type BatchWriteItemCommandInput,
  DeleteItemCommand,
  GetItemCommand,
  type GetItemCommandInput,
  PutItemCommand,
  type PutItemCommandInput,
  QueryCommand,
  type QueryCommandInput,
  ScanCommand,
  type ScanCommandInput,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from '@aws-sdk/client-dynamodb';
import type { Item } from '../../../shared/tables/item.ts';
import { holds, invalid, order, type Placeholders, pickFrom, projected, updated } from './expressions.ts';
import { keysOf, type Table } from './table.ts';

/** As the SDK's commands are: what is asked for is in `input`, which of them it is says its class. */
export type Command = { readonly input: object };

export type Written = { table: string; key: string; before: Item | undefined; after: Item | undefined };

export type StoreOptions = {
  tables: Record<string, Table>;
  nowMs: () => number;
  /** How long an index, or a read that isn't consistent, stays behind a write. */
  lagMs: (index: boolean) => number;
  /** Rows on one page of an index or a scan; a table's own pages end after a megabyte, as real ones do. */
  pageRows: () => number;
  /** How many of a batch's entries are done; the rest is given back. */
  batchShare: (entries: number) => number;
  onWrite: (written: Written) => void;
};

const mostPageBytes = 1_000_000;

/** DynamoDB without a network: each command as one instant. Expressions are evaluated as they are written. */
export class Store {
  readonly #options: StoreOptions;

  constructor(options: StoreOptions) {
    this.#options = options;
  }

  /** @throws what DynamoDB answers when it refuses */
  execute(command: Command): object {
    if (command instanceof UpdateItemCommand) return this.#update(command.input);
    if (command instanceof GetItemCommand) return this.#get(command.input);
    if (command instanceof QueryCommand) return this.#query(command.input);
    if (command instanceof BatchWriteItemCommand) return this.#batchWrite(command.input);
    if (command instanceof BatchGetItemCommand) return this.#batchGet(command.input);
    if (command instanceof ScanCommand) return this.#scan(command.input);
    if (command instanceof PutItemCommand) return this.#put(command.input);
    if (command instanceof DeleteItemCommand) return this.#delete(command.input);
    throw new Error(`the simulated store knows no ${command.constructor.name}`);
  }

  table(name: string | undefined): Table {
    const table = this.#options.tables[name ?? ''];
    if (!table) throw Object.assign(new Error(`no table ${name}`), { name: 'ResourceNotFoundException' });
    return table;
  }

  #update(input: UpdateItemCommandInput): object {
    const table = this.table(input.TableName);
    const given = input.Key ?? {};
    const key = table.keyOf(given);
    const before = table.get(key);
    this.#check(input.ConditionExpression, before, input);
    const after = updated(input.UpdateExpression ?? '', before ?? given, input);
    this.#write(input.TableName, key, before, after);
    if (input.ReturnValues === 'ALL_NEW') return { Attributes: after };
    if (input.ReturnValues === 'ALL_OLD') return before ? { Attributes: before } : {};
    return {};
  }

  #put(input: PutItemCommandInput): object {
    const table = this.table(input.TableName);
    const item = input.Item ?? {};
    const key = table.keyOf(item);
    const before = table.get(key);
    this.#check(input.ConditionExpression, before, input);
    this.#write(input.TableName, key, before, item);
    return {};
  }

  #delete(input: DeleteItemCommand['input']): object {
    const table = this.table(input.TableName);
    const key = table.keyOf(input.Key ?? {});
    const before = table.get(key);
    this.#check(input.ConditionExpression, before, input);
    if (before) this.#write(input.TableName, key, before, undefined);
    return input.ReturnValues === 'ALL_OLD' && before ? { Attributes: before } : {};
  }

  #check(condition: string | undefined, item: Item | undefined, placeholders: Placeholders): void {
    if (condition === undefined || holds(condition, item, placeholders)) return;
    throw Object.assign(new Error('The conditional request failed'), { name: 'ConditionalCheckFailedException' });
  }

  #write(name: string | undefined, key: string, before: Item | undefined, after: Item | undefined): void {
    const { nowMs, lagMs, onWrite } = this.#options;
    this.table(name).put(key, after, nowMs(), lagMs);
    onWrite({ table: name ?? '', key, before, after });
  }

  #get(input: GetItemCommandInput): object {
    const table = this.table(input.TableName);
    const [item] = this.#read(table, input.Key ?? {}, input.ConsistentRead);
    if (!item) return {};
    return {
      Item: input.ProjectionExpression === undefined ? item : projected(input.ProjectionExpression, item, input),
    };
  }

  /** @returns nothing or one */
  #read(table: Table, given: Item, consistent: boolean | undefined): Item[] {
    const key = table.keyOf(given);
    const item = consistent ? table.get(key) : table.stale(key, this.#options.nowMs());
    return item ? [item] : [];
  }

  #batchGet(input: BatchGetItemCommandInput): object {
    const Responses: Record<string, Item[]> = {};
    const UnprocessedKeys: Record<string, { Keys: Item[] }> = {};
    for (const [name, { Keys = [], ConsistentRead }] of Object.entries(input.RequestItems ?? {})) {
      const table = this.table(name);
      const done = this.#options.batchShare(Keys.length);
      Responses[name] = Keys.slice(0, done).flatMap((key) => this.#read(table, key, ConsistentRead));
      if (done < Keys.length) UnprocessedKeys[name] = { Keys: Keys.slice(done) };
    }
    return { Responses, UnprocessedKeys };
  }

  #batchWrite(input: BatchWriteItemCommandInput): object {
    const UnprocessedItems: Record<string, object[]> = {};
    for (const [name, requests] of Object.entries(input.RequestItems ?? {})) {
      const table = this.table(name);
      const done = this.#options.batchShare(requests.length);
      for (const { PutRequest, DeleteRequest } of requests.slice(0, done)) {
        const item = PutRequest?.Item;
        const key = table.keyOf(item ?? DeleteRequest?.Key ?? {});
        this.#write(name, key, table.get(key), item);
      }
      if (done < requests.length) UnprocessedItems[name] = requests.slice(done);
    }
    return { UnprocessedItems };
  }

  #query(input: QueryCommandInput): object {
    const table = this.table(input.TableName);
    const condition = input.KeyConditionExpression ?? '';
    const { rows, key } = table.source(input.IndexName, hashIn(input), this.#options.nowMs());
    const matching = rows.filter((row) => holds(condition, row, input));
    const direction = input.ScanIndexForward === false ? -1 : 1;
    matching.sort((a, b) => direction * table.compare(a, b, key));
    const start = input.ExclusiveStartKey;
    const left = start ? matching.filter((row) => direction * table.compare(row, start, key) > 0) : matching;
    const rowsHere = input.IndexName === undefined ? Infinity : this.#options.pageRows();
    const page = this.#page(left, Math.min(input.Limit ?? Infinity, rowsHere));
    const shown =
      input.FilterExpression === undefined
        ? page
        : page.filter((row) => holds(input.FilterExpression ?? '', row, input));
    const { ProjectionExpression: projection } = input;
    const last = page.at(-1);
    // As DynamoDB does: a page that is just full names a next one, even when that turns out empty.
    const more = last !== undefined && (page.length < left.length || page.length === input.Limit);
    return {
      Items: projection === undefined ? shown : shown.map((row) => projected(projection, row, input)),
      Count: shown.length,
      ...(more ? { LastEvaluatedKey: table.startKey(last, key) } : {}),
    };
  }

  #scan(input: ScanCommandInput): object {
    const table = this.table(input.TableName);
    const { key } = table.shape;
    const consistent = input.ConsistentRead ?? false;
    const rows = [...table.all()].flatMap((item) => this.#read(table, item, consistent));
    rows.sort((a, b) => table.compare(a, b, key) || (order(a[key.hash], b[key.hash]) ?? 0));
    const start = input.ExclusiveStartKey;
    const left = start ? rows.filter((row) => table.compare(row, start, key) > 0) : rows;
    const page = this.#page(left, Math.min(input.Limit ?? Infinity, this.#options.pageRows()));
    const last = page.at(-1);
    const filter = input.FilterExpression;
    return {
      Items: filter === undefined ? page : page.filter((row) => holds(filter, row, input)),
      ...(last && page.length < left.length ? { LastEvaluatedKey: pickFrom(last, keysOf(key)) } : {}),
    };
  }

  #page(rows: Item[], most: number): Item[] {
    let bytes = 0;
    const page: Item[] = [];
    for (const row of rows) {
      if (page.length >= most || bytes >= mostPageBytes) break;
      page.push(row);
      for (const value of Object.values(row)) bytes += value.S?.length ?? 10;
    }
    return page;
  }
}

/** The value that the partition key must equal. */
function hashIn({ KeyConditionExpression = '', ExpressionAttributeValues = {} }: QueryCommandInput): string {
  const placeholder = /^\s*[#\w]+\s*=\s*(:\w+)/.exec(KeyConditionExpression)?.[1];
  const hash = ExpressionAttributeValues[placeholder ?? '']?.S;
  if (hash === undefined) throw invalid('Query condition missed key schema element');
  return hash;
}
