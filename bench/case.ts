/** What a bench case is, and what it finds. */
import type { Fleet, FleetOptions } from './fleet.ts';

/** One figure against its bound. */
export interface Check {
  what: string;
  measured: string;
  mustBe: string;
  reached: boolean;
}

export interface Outcome {
  checks: Check[];
  /** What else was measured, without a bound. */
  notes?: string[];
}

export interface Bench {
  /** Smaller counts and shorter runs: to see that a case works, not for a figure. */
  readonly quick: boolean;
  /** Progress, for whoever waits. */
  say(line: string): void;
  /** A local system of its own for this case; ended after it, however it ends. */
  fleet(options?: FleetOptions): Promise<Fleet>;
}

export interface Case {
  name: string;
  what: string;
  /** As the issue that asked for it says. */
  mustBe: string;
  /** The same on the published code, measured on the same machine; `–` where nobody measured it. */
  published: string;
  run(bench: Bench): Promise<Outcome>;
}

/** What wasn't measured at all isn't reached. */
export function atMost(what: string, ms: number, boundMs: number): Check {
  const reached = Number.isFinite(ms) && ms <= boundMs;
  return { what, measured: inSeconds(ms), mustBe: `≤ ${inSeconds(boundMs)}`, reached };
}

export function under(what: string, value: number, bound: number, unit: string): Check {
  return { what, measured: `${round(value)} ${unit}`, mustBe: `< ${bound} ${unit}`, reached: value < bound };
}

export function noMoreThan(what: string, value: number, bound: number, unit: string): Check {
  return { what, measured: `${round(value)} ${unit}`, mustBe: `≤ ${bound} ${unit}`, reached: value <= bound };
}

export function atLeast(what: string, value: number, bound: number, unit: string): Check {
  return { what, measured: `${round(value)} ${unit}`, mustBe: `≥ ${bound} ${unit}`, reached: value >= bound };
}

export function exactly(what: string, count: number, wanted: number): Check {
  return { what, measured: String(count), mustBe: String(wanted), reached: count === wanted };
}

export function holds(what: string, truth: boolean, measured: string): Check {
  return { what, measured, mustBe: 'yes', reached: truth };
}

export function inSeconds(ms: number): string {
  if (Number.isNaN(ms) || ms === Number.NEGATIVE_INFINITY) return 'nothing measured';
  if (ms === Number.POSITIVE_INFINITY) return 'never';
  return ms < 10_000 ? `${(ms / 1000).toFixed(2)} s` : `${(ms / 1000).toFixed(1)} s`;
}

const round = (value: number): string => (Math.abs(value) < 100 ? value.toFixed(1) : String(Math.round(value)));
