import { Command, InvalidArgumentError, Option } from 'commander';
import { connectionExitCode, connectionText, readConnection } from './connection.ts';
import { drain, workerCalled } from './drain.ts';
import { drainedExitCode, drainedText, progressLine } from './drain-text.ts';
import { type ExitCode, exitCodes, exitCodesInWords } from './exit.ts';
import { explained } from './faults.ts';
import { defaultStateFile, openLocal } from './local.ts';
import { messagesText, readMessages } from './messages.ts';
import { reconcile, reconcileExitCode, reconcileText } from './reconcile.ts';
import { openStage } from './stage.ts';
import { exitCodeOf, readStatus } from './status.ts';
import { statusText } from './status-text.ts';
import type { Target } from './target.ts';
import { red } from './text.ts';
import { type Screen, untilInterrupted, watch } from './watch.ts';

export type Terminal = { out: Screen; err: Pick<NodeJS.WriteStream, 'write'> };

type Where = { stage: string; region?: string; local?: true; state: string; json?: true };

const longestMessage = 160;

/** @param onDone told what the exit code is, when a command has come to its end */
export function buildProgram({ out, err }: Terminal, onDone: (code: ExitCode) => void): Command {
  const program = new Command('fleet')
    .description('A fleet at a glance, and what can be done about it.')
    .addOption(new Option('-s, --stage <name>', 'the deployed stage').default('dev'))
    .addOption(new Option('--region <name>', 'where it is deployed').env('AWS_REGION'))
    .addOption(new Option('-l, --local', 'the system that `npm start` runs on this machine').conflicts('stage'))
    .addOption(new Option('--state <file>', 'where that system says what it is').default(defaultStateFile).hideHelp())
    .option('--json', 'for scripts: JSON instead of text. Use `npm run -s`, or npm says something too')
    .addHelpText('after', exitCodesInWords)
    .configureOutput({ writeOut: (text) => out.write(text), writeErr: (text) => err.write(text) })
    .exitOverride()
    .showHelpAfterError('(--help shows what there is)');

  const say = (value: unknown, text: () => string) =>
    out.write(`${program.opts<Where>().json ? JSON.stringify(value) : text()}\n`);

  /** What every command does: find the fleet, do its part, say what came of it. */
  const run = async (part: (target: Target) => Promise<ExitCode>) => {
    const { local, state, stage, region } = program.opts<Where>();
    onDone(await part(await (local ? openLocal(state) : openStage(stage, region))));
  };

  program
    .command('status', { isDefault: true })
    .description('workers and how full they are, connections by state, what nobody holds, what was given up')
    .action(() =>
      run(async (target) => {
        const status = await readStatus(target);
        say(status, () => statusText(status));
        return exitCodeOf(status);
      }),
    );

  program
    .command('watch')
    .description('the status again and again, until Ctrl-C')
    .option('--every <seconds>', 'how often', positive, 3)
    .action(({ every }: { every: number }) =>
      run(async (target) => {
        const { json } = program.opts<Where>();
        const show = async () => {
          const status = await readStatus(target);
          return json ? JSON.stringify(status) : statusText(status);
        };
        // What goes wrong later is shown, and looked at again: one watches when things go wrong.
        const troubled = (fault: unknown) => {
          const { message, fix } = explained(fault);
          return json ? JSON.stringify({ error: message, fix }) : `${red('✘')} ${message}`;
        };
        const screen = json ? { write: (text: string) => out.write(text), isTTY: false, columns: 80, rows: 24 } : out;
        await watch(screen, target.clock, every * 1000, untilInterrupted(), show, troubled);
        return exitCodes.fine;
      }),
    );

  program
    .command('drain')
    .description('have one worker hand over and end, as a deployment does it; another one is started in its place')
    .argument('<worker>', 'its id, or the beginning of it')
    .option('--timeout <seconds>', 'how long to look on', positive, 150)
    .action((given: string, { timeout }: { timeout: number }) =>
      run(async (target) => {
        const { json } = program.opts<Where>();
        const report = json ? () => undefined : progressLine(out);
        const drained = await drain(target, await workerCalled(target, given), timeout * 1000, report);
        say(drained, () => drainedText(drained));
        return drainedExitCode(drained);
      }),
    );

  program
    .command('reconcile')
    .description('look for dead workers and for connections without an owner at once, and wake workers up for them')
    .option('--dry-run', 'only look', false)
    .addOption(new Option('--connection <id>', 'only this one').conflicts('worker'))
    .option('--worker <id>', 'only what this worker left behind')
    .action(({ dryRun, connection, worker }: { dryRun: boolean; connection?: string; worker?: string }) =>
      run(async (target) => {
        const answer = await reconcile(target, { dryRun, connectionId: connection, workerId: worker });
        say(answer, () => reconcileText(answer));
        return reconcileExitCode(answer);
      }),
    );

  program
    .command('connection')
    .description('everything about one connection, and whether its owner lives')
    .argument('<id>', 'as it was started')
    .action((id: string) =>
      run(async (target) => {
        const report = await readConnection(target, id);
        say(report, () => connectionText(report));
        return connectionExitCode(report);
      }),
    );

  program
    .command('messages')
    .description('what was stored of a connection, each message as its source sent it')
    .argument('<id>', 'as it was started')
    .option('--last <count>', 'how many, the newest', positive, 10)
    .action((id: string, { last }: { last: number }) =>
      run(async (target) => {
        const messages = await readMessages(target, id, Math.ceil(last));
        say(messages, () => (messages.length === 0 ? 'nothing is stored' : messagesText(messages, longestMessage)));
        return exitCodes.fine;
      }),
    );

  return program;
}

function positive(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('it must be a number over 0');
}
