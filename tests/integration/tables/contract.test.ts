import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { TableProperties } from '../../../local/template.ts';
import { tableShapes } from '../../simulation/harness/table.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { connectionsContract } from '../../support/contract-connections.ts';
import { leasesContract } from '../../support/contract-leases.ts';
import { messagesContract } from '../../support/contract-others.ts';
import { workersContract } from '../../support/contract-workers.ts';

describe('the embedded DynamoDB', () => {
  let aws: TestAws;
  beforeAll(async () => {
    aws = await startAws({ namespace: 'contract' });
  });
  afterAll(() => aws?.stop());

  connectionsContract(() => aws);
  leasesContract(() => aws);
  messagesContract(() => aws);
  workersContract(() => aws);

  test('is shaped as the tables of the simulation are', () => {
    const { connectionsTable: connections, workersTable: workers, messagesTable: messages } = aws.template;
    expect({ connections: shapeOf(connections), workers: shapeOf(workers), messages: shapeOf(messages) }).toEqual(
      tableShapes,
    );
  });
});

function shapeOf({ KeySchema, GlobalSecondaryIndexes }: TableProperties) {
  const indexes = GlobalSecondaryIndexes?.map((index) => {
    expect(index.Projection.ProjectionType).not.toBe('ALL');
    return { name: index.IndexName, ...keyOf(index.KeySchema), also: index.Projection.NonKeyAttributes ?? [] };
  });
  return { key: keyOf(KeySchema), indexes };
}

function keyOf(schema: TableProperties['KeySchema']) {
  const named = (type: 'HASH' | 'RANGE') => schema.find(({ KeyType }) => KeyType === type)?.AttributeName;
  return { hash: named('HASH'), range: named('RANGE') };
}
