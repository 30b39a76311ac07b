import type { Case } from '../stage.js';
import { borrowedLease, coordinatorDown, stoppedRun, undeclaredWrite } from './authority.js';
import { conflict, membership, missingPrecondition, race, twoCandidates, wholeReplacement } from './conflict.js';
import { keyWithAnotherBody, resend, sameKeyAtOnce } from './idempotency.js';
import { inFlight } from './in-flight.js';
import { lateWrite, lateWriteAlone, lostHistory } from './late-write.js';

/** Every case, in the order in which they are played; those that take the coordinator away come last. */
export const CASES: readonly Case[] = [
  conflict,
  missingPrecondition,
  wholeReplacement,
  race,
  resend,
  sameKeyAtOnce,
  keyWithAnotherBody,
  twoCandidates,
  membership,
  undeclaredWrite,
  borrowedLease,
  lateWrite,
  ...inFlight,
  lostHistory,
  stoppedRun,
  lateWriteAlone,
  coordinatorDown,
];
