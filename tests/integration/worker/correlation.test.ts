import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { waitFor } from '../../../local/measure.ts';
import { systemClock } from '../../../shared/clock.ts';
import { pkOf } from '../../../shared/connection.ts';
import { sqsQueue } from '../../../shared/queue.ts';
import type { SocketPlan } from '../../../worker/socket.ts';
import { createTraces, type SendSegments } from '../../../worker/traces.ts';
import { startAws, type TestAws } from '../../support/aws.ts';
import { startWorker } from '../../support/worker-in-process.ts';
import type { Logged } from '../../support/worker-parts.ts';

const within = 10_000;
const header = 'Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1';

let aws: TestAws;
beforeAll(async () => {
  aws = await startAws({ namespace: 'correlation' });
}, 60_000);
afterAll(() => aws?.stop());

/** Also after a failure nothing may go on running. */
const running: ReturnType<typeof startWorker>[] = [];
const begin = (given: Parameters<typeof startWorker>[1]) => {
  const worker = startWorker(aws, given);
  running.push(worker);
  return worker;
};
afterEach(async () => {
  await Promise.all(running.splice(0).map((worker) => worker.stop()));
});

/** As POST /events does it. */
async function start(
  { connections, queue }: Pick<ReturnType<typeof startWorker>['context'], 'connections' | 'queue'>,
  id: string,
) {
  const pk = pkOf(id);
  const source = { name: 'numbered' };
  const intent = {
    desiredState: 'STARTED',
    wsUrl: `ws://source/${id}?{last_seq}`,
    source,
    generation: 1,
    status: 'PENDING',
  } as const;
  await connections.want(pk, intent, undefined, Date.now());
  await queue.send({ pk });
  return pk;
}

const has = (lines: Logged[], event: string, pk: string) =>
  waitFor(`${event} of ${pk}`, within, async () =>
    lines.some((line) => line.event === event && line.fields['connection'] === pk) ? true : null,
  );

/** Events about one connection, by their first word; `owned.unread` is about all of them. */
const aboutConnections =
  /^(claim|holding|lease|socket|release|renewal|status|position|message|item)\.|^(wakeup\.unsent|wakeup\.unsettled|owned\.unsettled|messages\.discarded)$/;
/** Before anything is owned there may be no epoch to tell. */
const epochUnknown = /^(claim\.(lost|unanswered|undecided)|wakeup\.unsettled)$/;

function problemsIn(lines: Logged[]): string[] {
  return lines.flatMap(({ event, fields }) => {
    const { connection, epoch } = fields;
    const about = `${event} ${JSON.stringify(fields)}`;
    if ('pk' in fields || 'connection_id' in fields) return [`another name: ${about}`];
    if (!aboutConnections.test(event) && connection === undefined) return [];
    if (typeof connection !== 'string' || !connection.startsWith('CONN#')) return [`no connection: ${about}`];
    if (typeof epoch !== 'number' && !(epoch === null && epochUnknown.test(event))) return [`no epoch: ${about}`];
    return [];
  });
}

describe('every line of a worker about a connection says which one, and in which epoch', () => {
  test('through claims, refusals, faults of the store and of the queue, a loss and a hand-over', async () => {
    const plans: SocketPlan[] = [];
    const failing = new Set(['acquire', 'setStatus', 'send', 'release', 'newestNumbered']);
    const once = (name: string) => {
      if (failing.delete(name)) throw new Error(`${name} is not answered`);
    };
    let handingOver = false;
    const worker = begin({
      env: { HEARTBEAT_EVERY: '1', LEASE_SECONDS: '10' },
      onDial: (plan) => plans.push(plan),
      instead: ({ leases, queue, messages, connections }) => ({
        connections,
        messages: {
          ...messages,
          newestNumbered: async (...query) => {
            once('newestNumbered');
            return messages.newestNumbered(...query);
          },
        },
        leases: {
          ...leases,
          acquire: async (...request) => {
            once('acquire');
            return leases.acquire(...request);
          },
          setStatus: async (...request) => {
            once('setStatus');
            return leases.setStatus(...request);
          },
          release: async (...request) => {
            if (handingOver) once('release');
            return leases.release(...request);
          },
        },
        queue: {
          ...queue,
          send: async (wakeUp) => {
            if (handingOver) once('send');
            return queue.send(wakeUp);
          },
        },
      }),
    });
    const { lines } = worker.log;
    const others = { ...worker.context, queue: sqsQueue(aws.sqs, { ...worker.context.config, clock: systemClock }) };

    const first = await start(others, 'first');
    // Its claim wasn't answered, and has to be made again.
    await has(lines, 'claim.undecided', first);
    await others.queue.send({ pk: first });
    await has(lines, 'claim.won', first);
    await has(lines, 'position.unanswered', first);
    const dialled = () => waitFor('a dial', within, async () => plans.shift() ?? null);
    const plan = await dialled();
    plan.onStatus({ do: 'report', status: 'RETRYING', reason: 'refused', attempts: 1 });
    await has(lines, 'status.unanswered', first);
    plan.onStatus({ do: 'report', status: 'OPEN' });
    await has(lines, 'socket.opened', first);

    const second = await start(others, 'second');
    (await dialled()).onEnd({ do: 'end', end: 'failed', reason: 'HTTP 403', attempts: 1 });
    await has(lines, 'holding.ended', second);

    const third = pkOf('third');
    await others.connections.want(
      third,
      {
        desiredState: 'STARTED',
        wsUrl: 'ws://source/3?{last_seq}',
        source: { name: 'numbered' },
        generation: 1,
        status: 'PENDING',
      },
      undefined,
      Date.now(),
    );
    await others.leases.acquire(third, 'w-other', Date.now() + 60_000, Date.now());
    await others.queue.send({ pk: third });
    await has(lines, 'claim.lost', third);

    const fourth = await start(others, 'fourth');
    await dialled();
    // Somebody takes it away behind the worker's back: the look at what it owns finds that.
    const item = await others.connections.get(fourth);
    await others.leases.release(
      { pk: fourth, owner: item?.leaseOwner ?? '', epoch: item?.leaseEpoch ?? 0 },
      { lastSeq: undefined, status: { status: 'PENDING', attempts: 0 } },
      Date.now(),
    );
    await has(lines, 'lease.lost', fourth);

    handingOver = true;
    expect(await worker.stop()).toBe('drained');
    const seen = new Set(lines.map(({ event }) => event));
    for (const event of ['claim.unanswered', 'release.unanswered', 'wakeup.unsent', 'socket.failed', 'holding.ended']) {
      expect(seen).toContain(event);
    }
    expect(problemsIn(lines)).toEqual([]);
  });

  test('and the checker can fail', () => {
    const fields = { connection: 'CONN#a', epoch: 1 };
    expect(problemsIn([{ event: 'socket.opened', fields }])).toEqual([]);
    const broken = [
      { ...fields, epoch: null },
      { epoch: 1 },
      { connection: 'a', epoch: 1 },
      { ...fields, pk: 'CONN#a' },
      { connection_id: 'a' },
    ];
    for (const wrong of broken) expect(problemsIn([{ event: 'socket.opened', fields: wrong }])).toHaveLength(1);
  });
});

describe('a trace', () => {
  test('goes from its sender through the queue to the claim and the dial', async () => {
    const sent: Record<string, unknown>[] = [];
    const send: SendSegments = async (segments) => {
      sent.push(...segments.map((text) => JSON.parse(text) as Record<string, unknown>));
      return 0;
    };
    const plans: SocketPlan[] = [];
    const worker = begin({
      onDial: (plan) => plans.push(plan),
      // The embedded queue forgets X-Ray's attribute; tests/moto/traces.test.ts has one that keeps it.
      instead: ({ log, metrics, queue }) => ({
        queue: {
          ...queue,
          receive: async (most) => (await queue.receive(most)).map((received) => ({ ...received, trace: header })),
        },
        traces: createTraces({ name: 'worker', send, clock: systemClock, log, metrics }),
      }),
    });
    const { queue } = worker.context;
    const pk = await start(worker.context, 'traced');
    const plan = await waitFor('a dial', within, async () => plans.find(({ url }) => url().includes('traced')) ?? null);
    plan.onOpen?.();
    // The same wake-up again finds it held: a segment without a claim in it.
    await queue.send({ pk });
    await waitFor('both segments', within, async () =>
      sent.filter(({ type }) => type === undefined).length === 2 ? true : null,
    );
    await worker.stop();
    const [segment] = sent.filter(({ type }) => type === undefined);
    expect(segment).toMatchObject({
      trace_id: '1-5759e988-bd862e3fe1be46a994272793',
      parent_id: '53995c3f42cd8ad8',
      annotations: { connection: pk, claim: 'won', epoch: expect.any(Number), worker: worker.context.presence.id },
    });
    const parts = sent.filter(({ parent_id }) => parent_id === segment?.['id']);
    expect(parts.map(({ name, fault }) => [name, fault])).toEqual([
      ['claim', undefined],
      ['dial', undefined],
    ]);
  });
});
