/** All cases, in the order of the issue that asked for them. */
import type { Case } from './case.ts';
import { sigkill } from './cases/sigkill.ts';
import { sigterm } from './cases/sigterm.ts';
import { startStorm } from './cases/start-storm.ts';
import { startToOpen } from './cases/start-to-open.ts';
import { stopToClosed } from './cases/stop-to-closed.ts';

export const cases: Case[] = [startToOpen, startStorm, stopToClosed, sigkill, sigterm];
