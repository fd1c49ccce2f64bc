/** The simulation is only worth as much as its store: it keeps the same contract as the embedded DynamoDB and moto. */
import { describe, jest } from '@jest/globals';
import { loneStore } from '../simulation/harness/lone-store.ts';
import { connectionsContract } from '../support/contract-connections.ts';
import { leasesContract } from '../support/contract-leases.ts';
import { messagesContract } from '../support/contract-others.ts';
import { workersContract } from '../support/contract-workers.ts';

jest.setTimeout(60_000);

describe('the simulated DynamoDB', () => {
  const store = loneStore(1);

  connectionsContract(() => store);
  leasesContract(() => store);
  messagesContract(() => store);
  workersContract(() => store);
});
