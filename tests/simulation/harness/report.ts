import type { Total } from './seeds.ts';
import { type Outcome, simulate } from './simulation.ts';
import type { Settings } from './world.ts';

const lastLines = 60;

/** What somebody needs to see of a seed that breaks an invariant: what, the last of what happened, and how to see it all. */
export async function explain(settings: Settings, found: Outcome, flags: string): Promise<string> {
  const again = await simulate({ ...settings, trace: true });
  const { violation } = found;
  const same = violation?.what === again.violation?.what && violation?.atMs === again.violation?.atMs;
  return [
    ...again.lines.slice(-lastLines),
    '',
    describeViolation(found),
    ...(same ? [] : [`It did not replay: the second time, ${describeViolation(again)}`]),
    `replay: npm run simulate -- --seed ${found.seed}${flags} --trace`,
  ].join('\n');
}

export function describeViolation({ seed, violation, virtualMs }: Outcome): string {
  if (!violation) return `seed ${seed} keeps all invariants for ${(virtualMs / 1000).toFixed(1)} s`;
  return `seed ${seed} breaks invariant ${violation.invariant} at ${(violation.atMs / 1000).toFixed(3)} s: ${violation.what}`;
}

export function describeTotal(total: Total, tookMs: number): string {
  const faults = Object.entries(total.faults).sort(([, a], [, b]) => b - a);
  const perSecond = total.seeds / (tookMs / 1000);
  return [
    `${total.seeds} seeds, ${perSecond.toFixed(0)} a second, ${(total.virtualMs / 3_600_000).toFixed(1)} virtual hours, ` +
      `${total.messages} messages stored, at rest ${total.longestSettledMs / 1000} s after the last fault at the latest`,
    `injected: ${faults.map(([name, count]) => `${name} ${count}`).join(', ')}`,
  ].join('\n');
}
