import { describe, expect, test } from '@jest/globals';
import { readTraceHeader } from '../../../shared/trace.ts';
import { createTraces } from '../../../worker/traces.ts';
import { settled, VirtualClock } from '../../support/virtual-clock.ts';
import { countedMetrics, keptLog } from '../../support/worker-parts.ts';

const traceId = '1-5759e988-bd862e3fe1be46a994272793';
const parentId = '53995c3f42cd8ad8';
const header = `Root=${traceId};Parent=${parentId};Sampled=1`;

describe('a trace header', () => {
  test('is read, with whatever else stands in it', () => {
    expect(readTraceHeader(`Self=1-x;${header};Lineage=a:b`)).toEqual({ traceId, parentId });
    expect(readTraceHeader(`Root=${traceId};Sampled=1`)).toEqual({ traceId, parentId: undefined });
  });

  test.each([
    ['none', undefined],
    ['not sampled', header.replace('Sampled=1', 'Sampled=0')],
    ['not decided', header.replace('Sampled=1', 'Sampled=?')],
    ['no decision', `Root=${traceId}`],
    ['no root', 'Sampled=1'],
    ['somebody’s nonsense', 'Root=<script>;Sampled=1'],
    ['nothing in it', ''],
  ])('%s: nothing is traced', (_what, text) => expect(readTraceHeader(text)).toBeUndefined());
});

type Sent = Record<string, unknown>;

function traces(send: (segments: Sent[]) => Promise<number>) {
  const clock = new VirtualClock();
  const log = keptLog();
  const metrics = countedMetrics();
  const parse = (segments: string[]) => send(segments.map((text) => JSON.parse(text) as Sent));
  const made = createTraces({ name: 'holdfast-test-worker', send: parse, clock, log, metrics });
  const stop = new AbortController();
  const sending = made.sendUntil(stop.signal);
  const stopped = async () => {
    stop.abort();
    await sending;
  };
  return { ...made, clock, log, metrics, stopped };
}

describe('traces', () => {
  test('one wake-up is a segment under its sender’s, with a part for the claim and one for the dial', async () => {
    const sent: Sent[] = [];
    const { begin, clock, stopped } = traces(async (segments) => {
      sent.push(...segments);
      return 0;
    });
    const beganAt = clock.now() / 1000;
    const trace = begin(header);
    trace?.annotate({ connection: 'CONN#a' });
    const claimed = trace?.step('claim');
    await clock.advance(100);
    claimed?.();
    trace?.annotate({ epoch: 7 });
    const dialled = trace?.step('dial');
    trace?.end();
    await clock.advance(400);
    dialled?.('handshake refused: HTTP 503');
    dialled?.('heard twice');
    await stopped();
    const [claim, segment, dial] = sent;
    expect(segment).toMatchObject({
      name: 'holdfast-test-worker',
      trace_id: traceId,
      parent_id: parentId,
      start_time: beganAt,
      end_time: beganAt + 0.1,
      annotations: { connection: 'CONN#a', epoch: 7 },
    });
    const part = { type: 'subsegment', trace_id: traceId, parent_id: segment?.['id'] };
    expect(claim).toMatchObject({ ...part, name: 'claim', start_time: beganAt, end_time: beganAt + 0.1 });
    expect(claim).not.toHaveProperty('fault');
    expect(dial).toMatchObject({ ...part, name: 'dial', end_time: beganAt + 0.5, fault: true });
    expect(JSON.stringify(dial)).toContain('HTTP 503');
    expect(sent).toHaveLength(3);
    expect(new Set(sent.map(({ id }) => id)).size).toBe(3);
  });

  test('what isn’t sampled costs nothing', () => {
    expect(traces(async () => 0).begin(header.replace('Sampled=1', 'Sampled=0'))).toBeUndefined();
  });

  test('what X-Ray doesn’t take, or isn’t there to take, is counted and forgotten; work goes on', async () => {
    let away = true;
    const { begin, clock, metrics, log, stopped } = traces(async () => {
      if (away) throw new Error('connect ECONNREFUSED');
      return 1;
    });
    begin(header)?.end();
    begin(header)?.end();
    await clock.advance(2000);
    await settled();
    expect([metrics.of('TracesDropped'), log.lines.map(({ event }) => event)]).toEqual([2, ['traces.unsent']]);
    away = false;
    begin(header)?.end();
    await stopped();
    expect(metrics.of('TracesDropped')).toBe(3);
  });

  test('more than may wait are dropped, and requests are small', async () => {
    const sizes: number[] = [];
    const { begin, metrics, stopped } = traces(async (segments) => {
      sizes.push(segments.length);
      return 0;
    });
    for (let i = 0; i < 620; i++) begin(header)?.end();
    await stopped();
    expect(sizes).toEqual(Array<number>(10).fill(50));
    expect(metrics.of('TracesDropped')).toBe(120);
  });
});
