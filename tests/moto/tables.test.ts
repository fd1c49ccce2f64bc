import { afterAll, beforeAll, describe } from '@jest/globals';
import { connectionsContract } from '../support/contract-connections.ts';
import { leasesContract } from '../support/contract-leases.ts';
import { messagesContract } from '../support/contract-others.ts';
import { workersContract } from '../support/contract-workers.ts';
import { type Moto, startMoto } from '../support/moto.ts';

describe('moto', () => {
  let moto: Moto;
  beforeAll(async () => {
    moto = await startMoto({ namespace: 'contract' });
  });
  afterAll(() => moto?.stop());

  connectionsContract(() => moto);
  leasesContract(() => moto);
  messagesContract(() => moto);
  workersContract(() => moto);
});
