import { CHECKERS } from './checkers/index.js';
import { about, type Call, type Checker, type History, type Violation } from './history.js';

/** A history is checked so often at most while it is shrunk. */
const MOST_CHECKS = 400;

/**
 * The smallest part of a history that still shows the violation: first what is about the ids in question, then without
 * everything that can be left out. What only the whole log shows stays as it is.
 */
export function shrink(history: History, violation: Violation): History {
  const checker = (CHECKERS as Readonly<Record<string, Checker>>)[violation.promise];
  const around = about(history, violation.about);
  if (checker === undefined || violation.calls.length === 0) return around;
  const shows = (candidate: History) =>
    checker(candidate).some(({ calls }) => violation.calls.some((id) => calls.includes(id)));
  // Without the log: a part of one is always broken.
  const small = [
    { ...around, log: [] },
    { ...history, log: [] },
    { ...history, calls: around.calls },
  ].find(shows);
  return small === undefined ? around : { ...small, calls: fewest(small, shows) };
}

/** Leaves out ever smaller pieces for as long as it still shows. */
function fewest(history: History, shows: (candidate: History) => boolean): readonly Call[] {
  let { calls } = history;
  let checks = 0;
  for (let size = Math.ceil(calls.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < calls.length && checks < MOST_CHECKS; checks += 1) {
      const fewer = [...calls.slice(0, at), ...calls.slice(at + size)];
      if (shows({ ...history, calls: fewer })) calls = fewer;
      else at += size;
    }
  }
  return calls;
}
