import { readPointer } from '../json-pointer.js';
import { Breach, NotApplicable } from '../result.js';
import type { SentWrite } from '../run.js';
import { type Case, expectRefused, expectStale, expectUnchanged, overtaken, problemOf, type Stage } from '../stage.js';
import { isAccepted, shown } from '../target.js';

/** Two runs change one resource from one version: what version checks are for. */

const RACES = 8;

export const conflict: Case = {
  name: 'conflict',
  title: 'A reads, B changes, A writes from what it read',
  proves: ['T1', 'W1', 'W1a'],
  async play(stage) {
    const { a, b } = stage;
    const { readByA, afterB, byB } = await overtaken(stage);
    const grants = [a.acquiredBy, b.acquiredBy];
    const late = await a.write('a', readByA);
    expectStale(late, "A's write from an old version");
    await expectUnchanged(a, afterB, "A's refused write");
    expectActionable(stage, late, mayGoOn(stage));
    for (const key of [late.key, undefined]) {
      const again = await a.write('a', readByA, key === undefined ? {} : { key });
      expectRefused(again, `the same old body, sent again with ${key === undefined ? 'a new key' : 'the same key'},`);
    }
    await expectUnchanged(a, afterB, 'the same old body, sent again,');
    await expectTied(stage, grants, [
      { write: late, runId: a.runId, by: a },
      { write: byB, runId: b.runId, by: b },
    ]);
  },
};

/**
 * Whether a run may try again by itself, after a fresh read (W4). A lease of the suite names the resource itself: where it
 * holds that alone, it is the explicit lease that may go on with a shared document.
 */
function mayGoOn({ a, resource }: Stage): boolean {
  const { change_class: changeClass } = resource;
  return changeClass === 'independent' || changeClass === 'derived' || (changeClass === 'shared_document' && a.isAlone);
}

/** The answer says what to do, in a form that a machine can act on. */
function expectActionable(stage: Stage, answer: SentWrite, mayRetry: boolean): void {
  if (answer.json === undefined)
    throw new Breach(`the refusal is not machine-readable: its content type is ${JSON.stringify(answer.contentType)}`);
  const { retryable, next, current } = problemOf(stage, answer);
  if (typeof retryable !== 'boolean')
    throw new Breach(`the refusal does not say whether it is retryable (${stage.config.problem.retryable})`);
  if (retryable && !mayRetry)
    throw new Breach(
      `the refusal calls itself retryable, but on a conflict of a ${stage.resource.change_class} a run stops`,
    );
  if (typeof next !== 'string' || next === '')
    throw new Breach(`the refusal does not say what to do (${stage.config.problem.next})`);
  if (!isTold(current))
    throw new Breach(`the refusal does not say which version is current (${stage.config.problem.current})`);
}

interface Attempt {
  readonly write: SentWrite;
  readonly runId: string;
  readonly by: Stage['a'];
}

/** Each attempt can be traced to its run: by the coordinator's log, and by the service's own record where it is shown. */
async function expectTied(stage: Stage, grants: readonly string[], attempts: readonly Attempt[]): Promise<void> {
  const { operator, config, say } = stage;
  for (const [index, { write, runId, by }] of attempts.entries()) {
    const requestId = grants[index] ?? '';
    const granted = await operator.audit.listEvents({ requestId });
    if (!granted.events.some((event) => event.runId === runId))
      throw new Breach(`the log does not tie the request ${requestId} to the run ${runId}`);
    const seen = await operator.audit.listEvents({ requestId: write.requestId });
    const foreign = seen.events.find((event) => event.runId !== '' && event.runId !== runId);
    if (foreign !== undefined)
      throw new Breach(`the log ties the write ${write.requestId} to the run ${foreign.runId}, which did not send it`);
    if (config.own_record === undefined) continue;
    const told = await by.ask(config.own_record, write.requestId);
    if (!isAccepted(told) || readPointer(told.json, config.own_record.run) !== runId)
      throw new Breach(
        `the service's own record does not tie the request ${write.requestId} to its run (${shown(told)})`,
      );
  }
  say(
    config.own_record === undefined
      ? "the log ties both grants to their runs; the service's own record was not looked at (own_record)"
      : "the log, and the service's own record, tie both attempts to their runs",
  );
}

export const missingPrecondition: Case = {
  name: 'missing_precondition',
  title: 'a write that does not say what it is based on',
  proves: ['W1'],
  async play(stage) {
    const { a, resource } = stage;
    const places = ['etag', 'version'];
    const inHeaders = JSON.stringify([resource.write.headers, resource.changes.a.headers ?? {}]);
    if (!places.some((place) => inHeaders.includes(`{${place}`)))
      throw new NotApplicable(
        'no header of the write names {etag} or {version}, so there is no condition to leave out',
      );
    await a.hold();
    const before = await a.read();
    const answer = await a.write('a', before, { without: places });
    expectRefused(answer, 'a write without its precondition');
    await expectUnchanged(a, before, 'a write without its precondition');
  },
};

export const wholeReplacement: Case = {
  name: 'whole_replacement',
  title: 'A replaces the whole from an older version than the one that B made',
  proves: ['T3', 'W1'],
  async play(stage) {
    if (stage.resource.changes.replace === undefined)
      throw new NotApplicable('the resource has no whole replacement (changes.replace)');
    const { readByA, afterB } = await overtaken(stage);
    const answer = await stage.a.write('replace', readByA);
    expectStale(answer, "A's replacement of the whole from an old version");
    await expectUnchanged(stage.a, afterB, "A's refused replacement");
  },
};

export const race: Case = {
  name: 'race',
  title: 'two incompatible changes from one version, sent at the same time',
  proves: ['T3', 'W1'],
  async play({ a, b }) {
    await a.hold();
    // Alone, the two are of one run, which may be as careless as two.
    const other = a.isAlone ? a : b;
    if (other === b) await b.hold();
    for (let round = 1; round <= RACES; round += 1) {
      const from = await a.read();
      const answers = await Promise.all([a.write('a', from), other.write('b', from)]);
      const winners = answers.filter(isAccepted);
      if (winners.length === 2)
        throw new Breach(`both of two changes from version ${String(from.version)} were accepted (round ${round})`);
      if (winners.length === 0)
        throw new Breach(
          `neither of two changes from version ${String(from.version)} was accepted (${answers.map(shown).join(', and ')}; round ${round})`,
        );
      const loser = answers.find((answer) => !isAccepted(answer));
      if (loser !== undefined) expectStale(loser, `the loser of round ${round}`);
      const now = await a.read();
      const told = winners[0]?.etag ?? null;
      if (told !== null && now.etag !== null && told !== now.etag)
        throw new Breach(`the winner of round ${round} was told ${told}, and ${now.etag} is read: its change was lost`);
    }
  },
};

export const membership: Case = {
  name: 'membership',
  title: 'B adds a member, A replaces the whole list from an older read',
  proves: ['T8', 'W1'],
  async play(stage) {
    const { add, replace } = stage.resource.changes;
    if (add === undefined || replace === undefined)
      throw new NotApplicable('the resource is no list of members: it needs changes.add and changes.replace');
    const { readByA, afterB } = await overtaken(stage, 'add');
    const answer = await stage.a.write('replace', readByA);
    expectStale(answer, "A's replacement of the list from an older read");
    await expectUnchanged(stage.a, afterB, "A's replacement of the list from an older read");
  },
};

export const twoCandidates: Case = {
  name: 'two_candidates',
  title: 'two runs pick two candidates for one pointer, each with an idempotency key of its own',
  proves: ['T7', 'W2', 'W4'],
  async play(stage) {
    const { a, b, resource } = stage;
    if (resource.change_class !== 'shared_pointer')
      throw new NotApplicable(`it is about a shared_pointer; this is a ${resource.change_class}`);
    if (!JSON.stringify([resource.write, resource.changes]).includes('{idempotency_key'))
      throw new NotApplicable('no write of the configuration sends an {idempotency_key}');
    const { readByA, afterB, byB } = await overtaken(stage);
    const lost = await a.write('a', readByA);
    expectStale(lost, "A's candidate");
    const { expected, current, resolver } = problemOf(stage, lost);
    if (!isTold(expected) || !isTold(current) || expected === current)
      throw new Breach(
        `the answer to A does not show both candidates: ${stage.config.problem.expected} is ${JSON.stringify(expected)}, ` +
          `${stage.config.problem.current} is ${JSON.stringify(current)}`,
      );
    if (!isTold(resolver))
      throw new Breach(`the answer to A does not say who decides (${stage.config.problem.resolver})`);
    expectRefused(await a.write('a', readByA, { key: lost.key }), "A's candidate, sent again,");
    if (a.isAlone) {
      await a.letGo();
      await b.hold();
    }
    const again = await b.write('b', readByA, { key: byB.key });
    if (again.status !== byB.status)
      throw new Breach(`B's candidate had won (${shown(byB)}); sent again by its key it is answered ${shown(again)}`);
    await expectUnchanged(b, afterB, 'what was sent again');
  },
};

function isTold(value: unknown): boolean {
  return (typeof value === 'string' && value !== '') || typeof value === 'number';
}
