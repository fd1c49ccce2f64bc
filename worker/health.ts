import { statSync, writeFileSync } from 'node:fs';
import { systemClock } from '../shared/clock.ts';
import { readConfig } from '../shared/config.ts';

/** Heartbeats that may be missing before the container counts as stuck. A store that is away doesn't stop them. */
const missedBeats = 6;

/** Shows that the process still turns its event loop. */
export function touch(file: string | undefined, nowMs: number): void {
  if (file !== undefined) writeFileSync(file, `${nowMs}\n`);
}

/** @returns whether the worker has touched its file lately */
export function isAlive(file: string, nowMs: number, heartbeatMs: number): boolean {
  const found = statSync(file, { throwIfNoEntry: false });
  return found !== undefined && nowMs - found.mtimeMs < missedBeats * heartbeatMs;
}

/** `node worker/health.ts --check` is the container's health check: exit code 0 while the worker lives. */
if (import.meta.main && process.argv.includes('--check')) {
  const { healthFile, lease } = readConfig();
  process.exitCode = healthFile !== undefined && isAlive(healthFile, systemClock.now(), lease.heartbeatMs) ? 0 : 1;
}
