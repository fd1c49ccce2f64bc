import { describe, expect, test } from '@jest/globals';
import type { Connection } from '../../../shared/connection.ts';
import type { WorkerReport } from '../../../shared/tables/workers.ts';
import { downSinceMs } from '../../../worker/gap.ts';
import { Opening } from '../../../worker/opening.ts';
import { Tombstones } from '../../../worker/tombstones.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { configOf, countedMetrics } from '../../support/worker-parts.ts';

const now = Date.UTC(2030, 0, 1);

const item = (given: Partial<Connection>): Connection => ({
  pk: 'CONN#a',
  desiredState: 'STARTED',
  wsUrl: 'ws://source/a',
  source: { name: 'plain' },
  generation: 1,
  leaseExpiresAtMs: 0,
  leaseEpoch: 1,
  status: 'OPEN',
  attempts: 0,
  createdAtMs: 0,
  openedAtMs: now - 60_000,
  updatedAtMs: now - 3000,
  ...given,
});

const dead: WorkerReport = {
  workerId: 'w-dead',
  leaseExpiresAtMs: now - 2000,
  held: 1,
  capacity: 1,
  draining: false,
  revision: '1',
  taskArn: undefined,
  startedAtMs: 0,
  expiredAtMs: now - 1000,
};

describe('a connection has had nobody', () => {
  const tombstones = () => new Tombstones({ get: async (id) => (id === dead.workerId ? dead : undefined) });
  const given = (env: Record<string, string> = {}) => ({ config: configOf(env), tombstones: tombstones() });

  test('since it was given back', () => {
    expect(downSinceMs(item({}), given())).toBe(now - 3000);
  });

  test('since the last renewal of the worker that died', async () => {
    const parts = given();
    await parts.tombstones.isDead('w-dead');
    const left = item({ leaseOwner: 'w-dead', leaseExpiresAtMs: now + 3_000_000 });
    expect(downSinceMs(left, parts)).toBe(now - 2000 - 20_000);
  });

  test('since the last renewal of its own short lease, without the worker lease', () => {
    const left = item({ leaseOwner: 'w-1', leaseExpiresAtMs: now - 500 });
    expect(downSinceMs(left, given({ WORKER_LEASE: 'off' }))).toBe(now - 500 - 20_000);
  });

  test('since the backstop, when nothing else is known', () => {
    expect(downSinceMs(item({ leaseOwner: 'w-1', leaseExpiresAtMs: now - 500 }), given())).toBe(now - 500);
  });

  test('and nothing was missed, when its socket was never open', () => {
    expect(downSinceMs(item({ openedAtMs: undefined }), given())).toBeUndefined();
  });
});

describe('the gap', () => {
  test('is observed once, at the first open socket, however many dials that took', () => {
    const metrics = countedMetrics();
    const opening = new Opening({ clock: new VirtualClock(), metrics }, { downSinceMs: 0 });
    opening.dialling();
    opening.failed('refused');
    expect(metrics.of('GapSeconds')).toBe(0);
    opening.opened();
    opening.opened();
    expect(metrics.of('GapSeconds')).toBe(1);
  });

  test('is none for what was never open', () => {
    const metrics = countedMetrics();
    new Opening({ clock: new VirtualClock(), metrics }, {}).opened();
    expect(metrics.of('GapSeconds')).toBe(0);
  });
});
