import { UpdateItemCommand, type UpdateItemCommandInput } from '@aws-sdk/client-dynamodb';
import type { Sender } from './client.ts';
import type { Place, Variant } from './variant.ts';

type Update = UpdateItemCommandInput & { ConditionExpression: string; UpdateExpression: string };

/** Changes each conditional update on its way out. @returns undefined: this one stays as it is */
export function rewriting(
  rewrite: (input: Update, place: Place) => Partial<Update> | undefined,
): NonNullable<Variant['sender']> {
  return (send, place) => (command, options) => {
    if (!(command instanceof UpdateItemCommand)) return send(command, options);
    const { ConditionExpression = '', UpdateExpression = '' } = command.input;
    const input = { ...command.input, ConditionExpression, UpdateExpression };
    const changed = rewrite(input, place);
    return send(changed ? new UpdateItemCommand({ ...input, ...changed }) : command, options);
  };
}

/** Drops parts of conditions. */
export function without(...parts: string[]): NonNullable<Variant['sender']> {
  return rewriting(({ ConditionExpression: condition }) => {
    const found = parts.filter((part) => condition.includes(part));
    if (found.length === 0) return undefined;
    return { ConditionExpression: found.reduce((text, part) => text.replace(part, ''), condition) };
  });
}

/** Treats a failure of some updates as if it had gone well. */
export function forgiving(isForgiven: (fault: Error, input: Update) => boolean): NonNullable<Variant['sender']> {
  return (send) => async (command, options) => {
    try {
      return await send(command, options);
    } catch (fault) {
      if (!(command instanceof UpdateItemCommand) || !(fault instanceof Error)) throw fault;
      const { ConditionExpression = '', UpdateExpression = '' } = command.input;
      if (isForgiven(fault, { ...command.input, ConditionExpression, UpdateExpression })) return {};
      throw fault;
    }
  };
}

/** One after the other. */
export function both(
  first: NonNullable<Variant['sender']>,
  then: NonNullable<Variant['sender']>,
): NonNullable<Variant['sender']> {
  return (send: Sender, place: Place) => first(then(send, place), place);
}

/** Replaces a method, or the getter of a property. @returns what undoes it */
export function replaced<T extends object>(
  prototype: T,
  name: keyof T & string,
  change: (original: PropertyDescriptor) => PropertyDescriptor,
): () => void {
  const original = Object.getOwnPropertyDescriptor(prototype, name);
  if (!original) throw new Error(`there is no ${name} to replace`);
  Object.defineProperty(prototype, name, { ...original, ...change(original) });
  return () => Object.defineProperty(prototype, name, original);
}
