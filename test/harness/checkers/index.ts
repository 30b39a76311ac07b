import type { Checker, History, Violation } from '../history.js';
import { auditRest } from './audit.js';
import { c6 } from './c6.js';
import { c7 } from './c7.js';
import { p1 } from './p1.js';
import { p2 } from './p2.js';
import { p3 } from './p3.js';
import { p4 } from './p4.js';
import { p5 } from './p5.js';
import { p6 } from './p6.js';
import { p7 } from './p7.js';
import { p8 } from './p8.js';
import { p9 } from './p9.js';
import { p10 } from './p10.js';

/** One for each promise, and what the runner kit and the guards of targets promise. */
export const CHECKERS = {
  ...{ P1: p1, P2: p2, P3: p3, P4: p4, P5: p5, P6: p6, P7: p7, P8: p8, P9: p9, P10: p10 },
  ...{ C6: c6, C7: c7 },
};

/** Everything that is wrong with a history. */
export function check(history: History): Violation[] {
  return [...Object.values<Checker>(CHECKERS).flatMap((checker) => checker(history)), ...auditRest(history)];
}
