/** Processor and memory of processes, as Linux counts them. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { promisify } from 'node:util';

/** Linux tells processes' times in this unit on every architecture that it runs on, whatever the kernel's own is. */
const TICKS_PER_SECOND = 100;
const FIRST_AFTER_NAME = 3;

/** Seconds of processor that the process has used so far, in user and kernel mode. */
export async function cpuSeconds(pid: number): Promise<number> {
  const field = await statFields(pid);
  return (field(14) + field(15)) / TICKS_PER_SECOND;
}

export async function rssBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  if (kilobytes === undefined) throw new Error(`/proc/${pid}/status says no VmRSS`);
  return Number(kilobytes) * 1024;
}

export interface Usage {
  atMs: number;
  machineSeconds: number;
  ownSeconds: number;
}

/** Own is this process and all that it has started and seen the end of. */
export async function usage(): Promise<Usage> {
  const field = await statFields(process.pid);
  const ownTicks = field(14) + field(15) + field(16) + field(17);
  const [line = ''] = (await readFile('/proc/stat', 'utf8')).split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line.split(/\s+/).slice(1).map(Number);
  return {
    atMs: Date.now(),
    machineSeconds: (user + nice + system + irq + softirq) / TICKS_PER_SECOND,
    ownSeconds: ownTicks / TICKS_PER_SECOND,
  };
}

/** The share of the machine, 0 to 1, that others used between the two. Call it when what was started has ended. */
export function shareOfOthers(before: Usage, after: Usage): number {
  const available = ((after.atMs - before.atMs) / 1000) * availableParallelism();
  const others = after.machineSeconds - before.machineSeconds - (after.ownSeconds - before.ownSeconds);
  return available === 0 ? 0 : Math.max(0, others / available);
}

export function describeMachine(): string {
  const model = cpus()[0]?.model ?? 'unknown processor';
  return `${availableParallelism()} cores (${model}), Node ${process.versions.node}`;
}

/** The commit that is measured, with a `+` when files that it knows were changed since. */
export async function revision(): Promise<string> {
  const git = async (...args: string[]): Promise<string> => (await promisify(execFile)('git', args)).stdout.trim();
  const changed = await git('status', '--porcelain', '--untracked-files=no');
  return `${await git('rev-parse', '--short', 'HEAD')}${changed === '' ? '' : '+'}`;
}

async function statFields(pid: number): Promise<(number: number) => number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name in field 2 may contain anything, so counting begins after it.
  const after = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (number) => Number(after[number - FIRST_AFTER_NAME]);
}
