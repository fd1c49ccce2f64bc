import { InvokeCommand } from '@aws-sdk/client-lambda';
import { z } from 'zod';
import { CliError, type ExitCode, exitCodes } from './exit.ts';
import type { Target } from './target.ts';

export type ReconcileRequest = { dryRun: boolean; connectionId?: string | undefined; workerId?: string | undefined };

/** What the function answers by hand is shown as it is. */
const answerSchema = z.record(z.string(), z.unknown());
const faultSchema = z.object({ errorMessage: z.string() });

export type ReconcileAnswer = z.infer<typeof answerSchema>;

/** Has the reconciler look at once, instead of at its next turn. The same function, invoked the same way everywhere. */
export async function reconcile(target: Target, request: ReconcileRequest): Promise<ReconcileAnswer> {
  const answer = await target.lambda.send(
    new InvokeCommand({ FunctionName: target.reconcileFunction, Payload: Buffer.from(JSON.stringify(request)) }),
  );
  const payload: unknown = JSON.parse(Buffer.from(answer.Payload ?? []).toString('utf8'));
  if (answer.FunctionError !== undefined) {
    const { errorMessage } = faultSchema.catch({ errorMessage: JSON.stringify(payload) }).parse(payload);
    throw new CliError(`the reconciler failed: ${errorMessage}`, `its log says more: ${target.reconcileFunction}`);
  }
  return answerSchema.parse(payload);
}

/** Wake-ups that the queue did not take are a failure; that there are none to send isn't. */
export const reconcileExitCode = ({ failed }: ReconcileAnswer): ExitCode =>
  typeof failed === 'number' && failed > 0 ? exitCodes.error : exitCodes.fine;

/** One line for each thing that it says; what is empty is left out. */
export function reconcileText(answer: ReconcileAnswer): string {
  const said = Object.entries(answer).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
  );
  const width = Math.max(...said.map(([name]) => name.length));
  return said
    .map(([name, value]) => `  ${name.padEnd(width)}  ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('\n');
}
