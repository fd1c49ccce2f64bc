import { afterAll, beforeAll, describe } from '@jest/globals';
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
});
