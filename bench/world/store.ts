/**
 * DynamoDB in memory, as far as holdfast uses it: fast enough for a hundred thousand connections, and it knows what each
 * request would be charged. Expressions are evaluated as they are written.
 */
import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  GetItemCommand,
  QueryCommand,
  type QueryCommandInput,
  ScanCommand,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from '@aws-sdk/client-dynamodb';
import type { Item } from '../../shared/tables/item.ts';
import { holds, pickFrom, updated } from '../../tests/simulation/harness/expressions.ts';
import type { Capacity } from './capacity.ts';
import { Table } from './table.ts';
import { deployedTables, tableNames } from './tables.ts';
import { indexWriteUnits, itemBytes, readUnits, refusedWriteUnits, tableWriteUnits } from './units.ts';

/** What one request took of one table, or of one index of it (`connections/by_owner`). */
export type Use = { target: string; write: number; read: number };
export type Outcome = { answer: object; uses: Use[]; fault?: Error };

type Options = {
  nowMs: () => number;
  /** How long an index stays behind its table. */
  indexLagMs: number;
  onWrite?: (table: string, before: Item | undefined, after: Item) => void;
};

/** "Query" in the API reference: a page ends after a megabyte. */
const pageBytes = 1_048_576;

export class Store {
  /** undefined: there is always enough. */
  capacity: Capacity | undefined;
  readonly #options: Options;
  readonly #tables: Map<string, Table>;

  constructor(options: Options) {
    this.#options = options;
    const kept = (name: string) => name !== tableNames.messages;
    this.#tables = new Map(
      Object.entries(deployedTables()).map(([name, shape]) => [name, new Table(shape, kept(name))]),
    );
  }

  execute(command: { readonly input: object }): Outcome {
    if (command instanceof UpdateItemCommand) return this.#update(command.input);
    if (command instanceof GetItemCommand) return this.#get(command.input);
    if (command instanceof QueryCommand) return this.#query(command.input);
    if (command instanceof ScanCommand) return this.#scan(command.input);
    if (command instanceof BatchWriteItemCommand) return this.#batchWrite(command.input);
    if (command instanceof BatchGetItemCommand) return this.#batchGet(command.input);
    throw new Error(`this store knows no ${command.constructor.name}`);
  }

  table(name: string | undefined): Table {
    const table = this.#tables.get(name ?? '');
    if (!table) throw new Error(`no table ${name}`);
    return table;
  }

  #update(input: UpdateItemCommandInput): Outcome {
    const name = input.TableName ?? '';
    const table = this.table(name);
    const given = input.Key ?? {};
    const key = table.keyOf(given);
    const before = table.get(key);
    if (input.ConditionExpression !== undefined && !holds(input.ConditionExpression, before, input)) {
      const uses = [{ target: name, write: refusedWriteUnits(before), read: 0 }];
      return { answer: {}, uses, fault: named('ConditionalCheckFailedException', 'The conditional request failed') };
    }
    const after = updated(input.UpdateExpression ?? '', before ?? given, input);
    const uses = this.#writeUses(name, before, after);
    // "Throttling": what is refused for lack of capacity takes none.
    if (this.capacity && !this.capacity.admits(table.shape, before, after, uses)) return throttled();
    table.put(key, after, this.#options.nowMs() + this.#options.indexLagMs);
    this.#options.onWrite?.(name, before, after);
    const returned = input.ReturnValues === 'ALL_NEW' ? after : input.ReturnValues === 'ALL_OLD' ? before : undefined;
    return { answer: returned ? { Attributes: returned } : {}, uses };
  }

  #writeUses(name: string, before: Item | undefined, after: Item): Use[] {
    const uses = [{ target: name, write: tableWriteUnits(before, after), read: 0 }];
    for (const index of this.table(name).shape.indexes) {
      const write = indexWriteUnits(before, after, index);
      if (write > 0) uses.push({ target: `${name}/${index.name}`, write, read: 0 });
    }
    return uses;
  }

  #batchWrite(input: BatchWriteItemCommand['input']): Outcome {
    const uses = Object.entries(input.RequestItems ?? {}).flatMap(([name, requests]) =>
      requests.flatMap(({ PutRequest }) => {
        const table = this.table(name);
        const item = PutRequest?.Item ?? {};
        const key = table.keyOf(item);
        const before = table.get(key);
        table.put(key, item, this.#options.nowMs() + this.#options.indexLagMs);
        return this.#writeUses(name, before, item);
      }),
    );
    return { answer: {}, uses };
  }

  #get(input: GetItemCommand['input']): Outcome {
    const name = input.TableName ?? '';
    const item = this.table(name).get(this.table(name).keyOf(input.Key ?? {}));
    const read = readUnits(item ? itemBytes(item) : 0, input.ConsistentRead ?? false);
    return { answer: item ? { Item: item } : {}, uses: [{ target: name, write: 0, read }] };
  }

  /** "DynamoDB read and write operations", BatchGetItem: each item is rounded up on its own. */
  #batchGet(input: BatchGetItemCommand['input']): Outcome {
    const Responses: Record<string, Item[]> = {};
    const uses: Use[] = [];
    for (const [name, { Keys = [], ConsistentRead = false }] of Object.entries(input.RequestItems ?? {})) {
      const table = this.table(name);
      const items = Keys.map((key) => table.get(table.keyOf(key)));
      Responses[name] = items.filter((item) => item !== undefined);
      const sizes = items.map((item) => readUnits(item ? itemBytes(item) : 0, ConsistentRead));
      uses.push({ target: name, write: 0, read: sizes.reduce((sum, units) => sum + units, 0) });
    }
    return { answer: { Responses }, uses };
  }

  /** The same page, Query: the sizes of all that is read are added, and their sum is rounded up. An index is read as it is. */
  #query(input: QueryCommandInput): Outcome {
    const name = input.TableName ?? '';
    const table = this.table(name);
    const index = input.IndexName;
    const target = index === undefined ? name : `${name}/${index}`;
    if (index === undefined) {
      if (table.keeps) throw new Error(`nothing queries the table ${name} itself`);
      return { answer: { Items: [] }, uses: [{ target, write: 0, read: readUnits(0, input.ConsistentRead ?? false) }] };
    }
    const hash = hashIn(input);
    const entries = table.entries(index, hash, this.#options.nowMs()) ?? [];
    const start = input.ExclusiveStartKey;
    const page: Item[] = [];
    let bytes = 0;
    let more = false;
    for (const { item, bytes: size } of entries) {
      if (start && table.compareIn(index, item, start) <= 0) continue;
      if (!holds(input.KeyConditionExpression ?? '', item, input)) continue;
      more = bytes + size > pageBytes || page.length === (input.Limit ?? Number.POSITIVE_INFINITY);
      if (more) break;
      page.push(item);
      bytes += size;
    }
    const last = more ? page.at(-1) : undefined;
    const keys = [...table.shape.keys, ...(table.shape.indexes.find((one) => one.name === index)?.keys ?? [])];
    return {
      answer: { Items: page, ...(last ? { LastEvaluatedKey: pickFrom(last, keys) } : {}) },
      uses: [{ target, write: 0, read: readUnits(bytes, input.ConsistentRead ?? false) }],
    };
  }

  /** The same page, Scan: by the size of all items that it goes through. One page: the workers table is small. */
  #scan(input: ScanCommand['input']): Outcome {
    const name = input.TableName ?? '';
    const Items = [...this.table(name).all()];
    const bytes = Items.reduce((sum, item) => sum + itemBytes(item), 0);
    if (bytes > pageBytes) throw new Error(`${name} has outgrown one page`);
    return {
      answer: { Items },
      uses: [{ target: name, write: 0, read: readUnits(bytes, input.ConsistentRead ?? false) }],
    };
  }
}

/** The value that the partition key must equal. */
function hashIn({ KeyConditionExpression = '', ExpressionAttributeValues = {} }: QueryCommandInput): string {
  const placeholder = /=\s*(:\w+)/.exec(KeyConditionExpression)?.[1];
  return ExpressionAttributeValues[placeholder ?? '']?.S ?? '';
}

const throttled = (): Outcome => ({
  answer: {},
  uses: [],
  fault: named('ThrottlingException', 'Throughput exceeds the current capacity'),
});

const named = (name: string, message: string): Error => Object.assign(new Error(message), { name });
