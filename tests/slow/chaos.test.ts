/**
 * A fleet to which everything happens that happens to fleets, at random and one upon the other, for a minute and a half. Whatever it was:
 * once it is over, every connection is held once, by a worker that lives, and nothing that the source numbered is missing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type DynamoProxy, startDynamoProxy } from '../support/dynamo-proxy.ts';
import { leaseMs, type Rig, startRig } from '../support/e2e.ts';

const forMs = 90_000;
const workers = 4;
const ids = Array.from({ length: 30 }, (_, index) => `c-${index + 1}`);
const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);

let rig: Rig;
let proxy: DynamoProxy;
let state = seed;

/** In [0, 1), the same again for the same seed (mulberry32). */
function random(): number {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}

const oneOf = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;

beforeAll(async () => {
  rig = await startRig('chaos', { workers: 0, restartWorkers: true });
  proxy = await startDynamoProxy({ target: rig.system.dynamodbUrl });
  for (let count = 0; count < workers; count++) await rig.addWorker({ AWS_ENDPOINT_URL_DYNAMODB: proxy.url });
  rig.keepSweeping();
}, 120_000);
afterAll(async () => {
  await rig?.stop();
  await proxy?.close();
}, 120_000);

const running = () => rig.system.workers.filter(({ pid }) => pid !== null);

const happenings: (() => Promise<void> | void)[] = [
  () => oneOf(running()).kill('SIGKILL'),
  () => oneOf(running()).kill('SIGTERM'),
  async () => {
    const frozen = oneOf(running());
    const { pid } = frozen;
    frozen.kill('SIGSTOP');
    await sleep(random() * 2 * leaseMs);
    if (frozen.pid === pid) frozen.kill('SIGCONT');
  },
  async () => {
    proxy.control({ dropAnswerEvery: 3 });
    await sleep(random() * leaseMs);
    proxy.control({ dropAnswerEvery: 0 });
  },
  () => proxy.control({ silentForMs: random() * 1.5 * leaseMs }),
  () => rig.source.control({ dropAll: true }),
  async () => {
    const id = oneOf(ids);
    await rig.source.control({ id, silent: true });
    await sleep(3_000);
    await rig.source.control({ id, silent: null });
  },
];

test(`whatever happens (CHAOS_SEED=${seed})`, async () => {
  await rig.startAll(ids, 5);
  const endsAtMs = Date.now() + forMs;
  while (Date.now() < endsAtMs) {
    if (running().length > 0) await oneOf(happenings)();
    await sleep(random() * 3_000);
  }
  await rig.allOpen(ids, 60_000);
  const messages = await rig.complete(ids);
  const living = new Set(running().map(({ workerId }) => workerId));
  for (const id of ids) {
    const { leaseOwner = null, status } = await rig.item(id);
    expect([id, living.has(leaseOwner), status]).toEqual([id, true, 'OPEN']);
    expect(messages.get(id)?.length).toBeGreaterThan(20);
  }
}, 240_000);
