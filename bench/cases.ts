/** All cases, in the order of the issue that asked for them. */
import type { Case } from './case.ts';
import { changedMind } from './cases/changed-mind.ts';
import { deletedItem } from './cases/deleted-item.ts';
import { frozen } from './cases/frozen.ts';
import { full } from './cases/full.ts';
import { hastySource } from './cases/hasty-source.ts';
import { idleCpu } from './cases/idle-cpu.ts';
import { idleMemory } from './cases/idle-memory.ts';
import { lostAnswers } from './cases/lost-answers.ts';
import { repeatedStart } from './cases/repeated-start.ts';
import { sigkill } from './cases/sigkill.ts';
import { sigterm } from './cases/sigterm.ts';
import { silence } from './cases/silence.ts';
import { startStorm } from './cases/start-storm.ts';
import { startToOpen } from './cases/start-to-open.ts';
import { stopToClosed } from './cases/stop-to-closed.ts';
import { throughput } from './cases/throughput.ts';

export const cases: Case[] = [
  startToOpen,
  startStorm,
  stopToClosed,
  sigkill,
  sigterm,
  frozen,
  repeatedStart,
  changedMind,
  deletedItem,
  lostAnswers,
  silence,
  full,
  hastySource,
  throughput,
  idleMemory,
  idleCpu,
];
