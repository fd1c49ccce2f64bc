import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Item } from '../../../shared/tables/item.ts';
import { type Comparator, type Condition, type Operand, Syntax, type UpdatePlan } from './expression-syntax.ts';

/** What comes with an expression in a request. */
export type Placeholders = {
  ExpressionAttributeNames?: Record<string, string> | undefined;
  ExpressionAttributeValues?: Item | undefined;
};

const conditions = new Map<string, Condition>();
const updates = new Map<string, UpdatePlan>();
const projections = new Map<string, string[]>();

/** @param item undefined: there is none, and so none of its attributes */
export function holds(text: string, item: Item | undefined, placeholders: Placeholders): boolean {
  return test(
    remembered(conditions, text, (syntax) => syntax.condition()),
    item ?? {},
    placeholders,
  );
}

/** @returns the item after the update; the one given stays as it is */
export function updated(text: string, item: Item, placeholders: Placeholders): Item {
  const plan = remembered(updates, text, (syntax) => syntax.update());
  const after = { ...item };
  for (const { attribute, to } of plan.set) {
    const value = valueOf(to, item, placeholders);
    if (value === undefined)
      throw invalid('The provided expression refers to an attribute that does not exist in the item');
    after[nameOf(attribute, placeholders)] = value;
  }
  for (const { attribute, by } of plan.add) {
    const name = nameOf(attribute, placeholders);
    after[name] = numeric(numberOf(item[name] ?? { N: '0' }) + numberOf(valueOf(by, item, placeholders)));
  }
  for (const attribute of plan.remove) delete after[nameOf(attribute, placeholders)];
  return after;
}

export function projected(text: string, item: Item, placeholders: Placeholders): Item {
  const names = remembered(projections, text, (syntax) => syntax.projection());
  return pickFrom(
    item,
    names.map((name) => nameOf(name, placeholders)),
  );
}

export function pickFrom(item: Item, names: readonly string[]): Item {
  const picked: Item = {};
  for (const name of names) {
    const value = item[name];
    if (value !== undefined) picked[name] = value;
  }
  return picked;
}

export function invalid(message: string): Error {
  return Object.assign(new Error(message), { name: 'ValidationException' });
}

/** @returns below, at or above zero; undefined: these two can't be ordered */
export function order(a: AttributeValue | undefined, b: AttributeValue | undefined): number | undefined {
  if (a?.N !== undefined && b?.N !== undefined) return Number(a.N) - Number(b.N);
  if (a?.S === undefined || b?.S === undefined) return undefined;
  return a.S === b.S ? 0 : a.S < b.S ? -1 : 1;
}

function remembered<T>(cache: Map<string, T>, text: string, parse: (syntax: Syntax) => T): T {
  let parsed = cache.get(text);
  if (parsed === undefined) {
    parsed = parse(new Syntax(text));
    cache.set(text, parsed);
  }
  return parsed;
}

function test(condition: Condition, item: Item, placeholders: Placeholders): boolean {
  switch (condition.kind) {
    case 'and':
      return test(condition.left, item, placeholders) && test(condition.right, item, placeholders);
    case 'or':
      return test(condition.left, item, placeholders) || test(condition.right, item, placeholders);
    case 'not':
      return !test(condition.of, item, placeholders);
    case 'exists':
      return (item[nameOf(condition.attribute, placeholders)] !== undefined) === condition.wanted;
    case 'begins_with': {
      const text = item[nameOf(condition.attribute, placeholders)]?.S;
      const prefix = valueOf(condition.prefix, item, placeholders)?.S;
      return text !== undefined && prefix !== undefined && text.startsWith(prefix);
    }
    case 'compare':
      return compare(
        condition.by,
        valueOf(condition.left, item, placeholders),
        valueOf(condition.right, item, placeholders),
      );
    case 'between': {
      const value = valueOf(condition.of, item, placeholders);
      const least = valueOf(condition.least, item, placeholders);
      return compare('>=', value, least) && compare('<=', value, valueOf(condition.most, item, placeholders));
    }
    case 'in': {
      const value = valueOf(condition.of, item, placeholders);
      return condition.list.some((one) => compare('=', value, valueOf(one, item, placeholders)));
    }
  }
}

function compare(by: Comparator, left: AttributeValue | undefined, right: AttributeValue | undefined): boolean {
  // What isn't there differs from everything, and is neither before nor after anything.
  if (by === '=') return same(left, right);
  if (by === '<>') return !same(left, right);
  const difference = order(left, right);
  if (difference === undefined) return false;
  if (by === '<') return difference < 0;
  if (by === '<=') return difference <= 0;
  return by === '>' ? difference > 0 : difference >= 0;
}

function same(left: AttributeValue | undefined, right: AttributeValue | undefined): boolean {
  if (left === undefined || right === undefined) return false;
  const difference = order(left, right);
  if (difference !== undefined) return difference === 0;
  return JSON.stringify(left) === JSON.stringify(right);
}

function valueOf(operand: Operand, item: Item, placeholders: Placeholders): AttributeValue | undefined {
  switch (operand.kind) {
    case 'attribute':
      return item[nameOf(operand.name, placeholders)];
    case 'value': {
      const value = placeholders.ExpressionAttributeValues?.[operand.name];
      if (value === undefined) throw invalid(`an expression attribute value is not defined: ${operand.name}`);
      return value;
    }
    case 'sum': {
      const left = numberOf(valueOf(operand.left, item, placeholders));
      return numeric(left + operand.sign * numberOf(valueOf(operand.right, item, placeholders)));
    }
    case 'if_not_exists':
      return item[nameOf(operand.attribute, placeholders)] ?? valueOf(operand.otherwise, item, placeholders);
  }
}

function nameOf(name: string, placeholders: Placeholders): string {
  if (!name.startsWith('#')) return name;
  const attribute = placeholders.ExpressionAttributeNames?.[name];
  if (attribute === undefined) throw invalid(`an expression attribute name is not defined: ${name}`);
  return attribute;
}

function numberOf(value: AttributeValue | undefined): number {
  if (value?.N === undefined) throw invalid('An operand in the update expression has an incorrect data type');
  return Number(value.N);
}

const numeric = (value: number): AttributeValue => ({ N: String(value) });
