import { BatchWriteItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { Command } from './store.ts';
import { tableNames } from './table.ts';

/** What a request is for, as far as it can be seen from outside. */
export type Kind = 'take' | 'renew' | 'status' | 'release' | 'want' | 'worker' | 'expire' | 'messages' | 'read';

export function kindOf(command: Command): Kind {
  if (command instanceof BatchWriteItemCommand) return 'messages';
  if (!(command instanceof UpdateItemCommand)) return 'read';
  const { TableName, UpdateExpression = '', ConditionExpression = '' } = command.input;
  if (TableName === tableNames.workers) return UpdateExpression.includes('expired_at_ms') ? 'expire' : 'worker';
  if (UpdateExpression.includes('lease_epoch = ') || UpdateExpression.includes('#lease_owner = ')) return 'take';
  if (/REMOVE[^A-Z]*lease_owner/.test(UpdateExpression)) return 'release';
  if (!ConditionExpression.includes(':owner')) return 'want';
  return UpdateExpression.includes('lease_expires_at_ms') ? 'renew' : 'status';
}
