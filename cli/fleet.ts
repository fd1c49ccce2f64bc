import { CommanderError } from 'commander';
import { exitCodes } from './exit.ts';
import { explained } from './faults.ts';
import { buildProgram } from './program.ts';
import { red } from './text.ts';

/** `npm run fleet -- [--stage prod | --local] <command>`; `--help` shows what there is. */
const program = buildProgram({ out: process.stdout, err: process.stderr }, (code) => {
  process.exitCode = code;
});

try {
  await program.parseAsync();
} catch (fault) {
  if (fault instanceof CommanderError) process.exitCode = fault.exitCode === 0 ? exitCodes.fine : exitCodes.usage;
  else {
    const { message, fix } = explained(fault);
    if (program.opts<{ json?: true }>().json) process.stdout.write(`${JSON.stringify({ error: message, fix })}\n`);
    process.stderr.write(`${red('✘')} ${message}\n${fix === undefined ? '' : `  ${fix}\n`}`);
    process.exitCode = exitCodes.error;
  }
}
