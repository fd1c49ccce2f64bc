import { type Connection, isOrphan, pkOf } from '../shared/connection.ts';
import type { WorkerReport } from '../shared/tables/workers.ts';
import { type ConnectionView, connectionView, isoTime } from '../shared/view.ts';
import { CliError, type ExitCode, exitCodes } from './exit.ts';
import type { Target } from './target.ts';
import { bold, green, red, yellow } from './text.ts';

export type ConnectionReport = ConnectionView & {
  /** In words: who has it, or why nobody does. */
  about: string;
  orphan: boolean;
};

/** Everything about one connection, and whether its owner lives. */
export async function readConnection({ connections, workers, clock }: Target, id: string): Promise<ConnectionReport> {
  const connection = await connections.get(pkOf(id));
  if (!connection)
    throw new CliError(`there is no connection ${id}`, 'it was never started, or was stopped and is forgotten');
  const owner = connection.leaseOwner === undefined ? undefined : await workers.get(connection.leaseOwner);
  const now = clock.now();
  return { ...connectionView(connection, now), ...judge(connection, owner, now) };
}

/** @param owner the row of its owner; undefined: there is none, or it is forgotten */
export function judge(connection: Connection, owner: WorkerReport | undefined, nowMs: number) {
  const { leaseOwner, leaseExpiresAtMs, desiredState, status, statusReason } = connection;
  if (status === 'FAILED')
    return { about: `given up: ${statusReason ?? 'its source refused it for good'}`, orphan: false };
  const wanted = desiredState === 'STARTED';
  if (leaseOwner !== undefined && owner?.expiredAtMs !== undefined) {
    const about = `${leaseOwner} had it, and is dead since ${isoTime(owner.expiredAtMs)}`;
    return { about, orphan: wanted };
  }
  if (leaseOwner !== undefined && leaseExpiresAtMs > nowMs) {
    return { about: `${leaseOwner} has it${owner?.draining ? ', and is handing over' : ''}`, orphan: false };
  }
  if (!wanted) return { about: 'nobody wants it', orphan: false };
  if (!isOrphan(connection, nowMs))
    return { about: `its next try is due at ${isoTime(leaseExpiresAtMs)}`, orphan: false };
  const about = leaseOwner === undefined ? 'no worker has taken it yet' : `the lease of ${leaseOwner} has run out`;
  return { about, orphan: true };
}

export function connectionExitCode({ orphan, status }: ConnectionReport): ExitCode {
  if (orphan) return exitCodes.trouble;
  return status === 'FAILED' ? exitCodes.failed : exitCodes.fine;
}

export function connectionText(report: ConnectionReport): string {
  const { connection_id, status, about, orphan, ...rest } = report;
  const paint = orphan || status === 'FAILED' ? red : status === 'OPEN' ? green : yellow;
  const shown = Object.entries(rest).filter(
    ([name, value]) => value !== null && value !== false && name !== 'lease_expires_at_ms',
  );
  const width = Math.max(...shown.map(([name]) => name.length));
  const lines = shown.map(
    ([name, value]) => `  ${name.padEnd(width)}  ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  return [`${bold(connection_id)}   ${paint(status)}   ${about}`, ...lines].join('\n');
}
