import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  bucketOf,
  type Connection,
  type Decision,
  decideStart,
  decideStop,
  isWanted,
} from '../../shared/connection.ts';

/** What happens to one connection: events from outside, and what a worker does to the item in between. */
type Step =
  | { kind: 'START'; url: string; parameter: number | undefined; eventTimeMs: number | undefined }
  | { kind: 'STOP'; eventTimeMs: number | undefined }
  | { kind: 'claimed' | 'released' | 'failed' };

type Rules = { decideStart: typeof decideStart; decideStop: typeof decideStop };

const eventTimeMs = fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined });
const startStep: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant('START' as const),
  url: fc.constantFrom('wss://a', 'wss://b'),
  parameter: fc.option(fc.constantFrom(1, 2), { nil: undefined }),
  eventTimeMs,
});
const stopStep: fc.Arbitrary<Step> = fc.record({ kind: fc.constant('STOP' as const), eventTimeMs });
const workerStep: fc.Arbitrary<Step> = fc.record({ kind: fc.constantFrom('claimed', 'released', 'failed') });
const steps = fc.array(fc.oneof(startStep, stopStep, workerStep), { maxLength: 25 });

function decide(rules: Rules, now: Connection | undefined, step: Step): Decision {
  if (step.kind === 'START') {
    const parameters = step.parameter === undefined ? {} : { parameters: { a: step.parameter, b: 0 } };
    return rules.decideStart(now, {
      wsUrl: step.url,
      source: { name: 'plain', ...parameters },
      eventTimeMs: step.eventTimeMs,
    });
  }
  return rules.decideStop(now, { eventTimeMs: 'eventTimeMs' in step ? step.eventTimeMs : undefined });
}

const fresh: Pick<Connection, 'pk' | 'leaseExpiresAtMs' | 'leaseEpoch' | 'attempts' | 'createdAtMs' | 'updatedAtMs'> = {
  pk: 'CONN#a',
  leaseExpiresAtMs: 0,
  leaseEpoch: 0,
  attempts: 0,
  createdAtMs: 0,
  updatedAtMs: 0,
};

/** As the table writes a decision. */
function applied(now: Connection | undefined, decision: Decision): Connection | undefined {
  if (decision.outcome === 'changed') {
    const { eventTimeMs: newer = now?.eventTimeMs, ...intent } = decision.intent;
    return { ...fresh, ...now, ...intent, eventTimeMs: newer };
  }
  if (decision.outcome !== 'unchanged' || !now || decision.noteEventTimeMs === undefined) return now;
  return { ...now, eventTimeMs: decision.noteEventTimeMs };
}

function worked(now: Connection | undefined, kind: 'claimed' | 'released' | 'failed'): Connection | undefined {
  if (!now) return now;
  if (kind === 'claimed') return isWanted(now) ? { ...now, leaseOwner: 'w', status: 'OPEN' } : now;
  const { leaseOwner, ...free } = now;
  if (leaseOwner === undefined) return now;
  const wanted = now.desiredState === 'STARTED';
  if (kind === 'failed') return wanted ? { ...free, status: 'FAILED' } : now;
  return { ...free, status: wanted ? 'PENDING' : 'CLOSED' };
}

/** Goes through the steps, and shows each event to `look` with what was there before and after. */
function run(
  rules: Rules,
  all: Step[],
  look: (step: Step, before: Connection | undefined, decision: Decision, after: Connection | undefined) => void,
): Connection | undefined {
  let now: Connection | undefined;
  for (const step of all) {
    if (step.kind !== 'START' && step.kind !== 'STOP') {
      now = worked(now, step.kind);
      continue;
    }
    const decision = decide(rules, now, step);
    const after = applied(now, decision);
    look(step, now, decision, after);
    now = after;
  }
  return now;
}

const properties: Record<string, (rules: Rules) => fc.IProperty<[Step[]]>> = {
  'the same event twice changes nothing the second time': (rules) =>
    fc.property(steps, (all) => {
      run(rules, all, (step, _before, decision, after) => {
        if (decision.outcome === 'stale' || decision.outcome === 'unknown') return;
        expect(decide(rules, after, step)).toEqual({ outcome: 'unchanged' });
      });
    }),

  'an event that is older than the newest changes nothing': (rules) =>
    fc.property(steps, (all) => {
      let newest = 0;
      run(rules, all, (step, before, decision, after) => {
        const time = 'eventTimeMs' in step ? step.eventTimeMs : undefined;
        if (time !== undefined && before && time < newest) {
          expect(decision).toEqual({ outcome: 'stale', newestEventTimeMs: newest });
          expect(after).toBe(before);
        }
        if (time !== undefined && after) newest = Math.max(newest, time);
      });
    }),

  'the newest time never goes back': (rules) =>
    fc.property(steps, (all) => {
      run(rules, all, (_step, before, _decision, after) => {
        expect(after?.eventTimeMs ?? 0).toBeGreaterThanOrEqual(before?.eventTimeMs ?? 0);
      });
    }),

  'generation goes up by one at a START that changes something, and never else': (rules) =>
    fc.property(steps, (all) => {
      run(rules, all, (step, before, decision, after) => {
        const changes = step.kind === 'START' && decision.outcome === 'changed';
        expect(after?.generation ?? 0).toBe((before?.generation ?? 0) + (changes ? 1 : 0));
      });
    }),

  "after an event that isn't late it is as the event says": (rules) =>
    fc.property(steps, (all) => {
      run(rules, all, (step, _before, decision, after) => {
        if (decision.outcome === 'stale' || decision.outcome === 'unknown' || !after) return;
        expect(bucketOf(after)).toBe(step.kind === 'START' ? 'STARTED' : 'STOPPED');
        if (step.kind === 'START') expect(after.wsUrl).toBe(step.url);
      });
    }),

  'STOP creates nothing': (rules) =>
    fc.property(steps, (all) => {
      run(rules, all, (step, before, decision, after) => {
        if (step.kind === 'STOP' && !before) expect([decision, after]).toEqual([{ outcome: 'unknown' }, undefined]);
      });
    }),

  'no event touches lease or position': (rules) =>
    fc.property(steps, (all) => {
      run(rules, all, (_step, before, _decision, after) => {
        expect(after?.leaseOwner).toBe(before?.leaseOwner);
        expect(after?.leaseEpoch ?? 0).toBe(before?.leaseEpoch ?? 0);
      });
    }),
};

describe('the decisions', () => {
  test.each(Object.keys(properties))('%s', (name) => {
    const property = properties[name]?.({ decideStart, decideStop });
    if (property) fc.assert(property, { numRuns: 1000 });
  });
});

// A checker must be able to fail: rules with a fault each, and the property that has to find it.
const broken: Record<keyof typeof properties, Rules> = {
  'the same event twice changes nothing the second time': {
    decideStop,
    decideStart: (now, wanted) => decideStart(now && { ...now, source: { name: `${now.source.name}?` } }, wanted),
  },
  'an event that is older than the newest changes nothing': {
    decideStart,
    decideStop: (now) => decideStop(now, {}),
  },
  'the newest time never goes back': {
    decideStart: (now, wanted) => decideStart(now && { ...now, eventTimeMs: undefined }, wanted),
    decideStop,
  },
  'generation goes up by one at a START that changes something, and never else': {
    decideStop,
    decideStart(now, wanted) {
      const decision = decideStart(now, wanted);
      return decision.outcome === 'changed' ? { ...decision, intent: { ...decision.intent, generation: 1 } } : decision;
    },
  },
  "after an event that isn't late it is as the event says": {
    decideStop,
    // The status is forgotten: what was given up is taken for wanted.
    decideStart: (now, wanted) => (now?.status === 'FAILED' ? { outcome: 'unchanged' } : decideStart(now, wanted)),
  },
  'STOP creates nothing': {
    decideStart,
    decideStop(now, event) {
      if (now) return decideStop(now, event);
      const intent = {
        desiredState: 'STOPPED',
        wsUrl: '',
        source: { name: 'plain' },
        generation: 0,
        status: 'CLOSED',
      } as const;
      return { outcome: 'changed', intent };
    },
  },
  'no event touches lease or position': {
    decideStop,
    decideStart(now, wanted) {
      const decision = decideStart(now, wanted);
      if (decision.outcome !== 'changed' || !now) return decision;
      const intent = { ...decision.intent, leaseEpoch: 0, leaseOwner: undefined };
      return { ...decision, intent };
    },
  },
};

describe('a broken rule is found by', () => {
  test.each(Object.keys(broken))('%s', (name) => {
    const rules = broken[name];
    const property = rules && properties[name]?.(rules);
    if (!property) throw new Error(`no property ${name}`);
    expect(fc.check(property, { numRuns: 1000 }).failed).toBe(true);
  });
});

test('a source is the same whatever the order of its parameters, which DynamoDB does not keep', () => {
  const anything = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }));
  const reversed = (value: unknown): unknown =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(
          Object.entries(value)
            .reverse()
            .map(([key, inner]) => [key, reversed(inner)]),
        )
      : value;
  fc.assert(
    fc.property(anything, (parameters) => {
      const wanted = { wsUrl: 'wss://a', source: { name: 'plain', parameters } };
      const now = applied(undefined, decideStart(undefined, wanted));
      const other = {
        ...wanted,
        source: { name: 'plain', parameters: reversed(parameters) as Record<string, unknown> },
      };
      expect(decideStart(now, other)).toEqual({ outcome: 'unchanged' });
    }),
  );
});
