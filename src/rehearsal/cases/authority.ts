import { setTimeout as pause } from 'node:timers/promises';
import type { ChangeName } from '../config.js';
import { Breach, NotApplicable, Undecided } from '../result.js';
import type { SentWrite } from '../run.js';
import {
  BACK_MS,
  type Case,
  changeInOrder,
  expectRefused,
  expectUnchanged,
  readWhenBack,
  type Stage,
  withoutCoordinator,
  withSilentCoordinator,
} from '../stage.js';
import { type Answer, isAccepted, shown } from '../target.js';

/** Writes that nobody was given the right to, or not any more. */

const OF_AUTHORITY = ['lease', 'token', 'credential'];

export const undeclaredWrite: Case = {
  name: 'undeclared_write',
  title: 'a write to what the run did not declare, and one that presents nothing',
  proves: ['C10', 'P4'],
  async play(stage) {
    const { a, b, resource } = stage;
    await b.hold();
    const before = await b.read();
    if (resource.elsewhere === undefined) {
      stage.say('a write under a lease on something else was not tried (elsewhere)');
    } else {
      await a.hold({ of: resource.elsewhere });
      expectRefused(await a.write('a', before), `a write under a lease on ${resource.elsewhere.resource}`);
      await expectUnchanged(b, before, 'a write under a lease on something else');
    }
    expectRefused(await b.write('a', before, { without: OF_AUTHORITY }), 'a write that presents nothing it holds');
    await expectUnchanged(b, before, 'a write that presents nothing it holds');
  },
};

export const borrowedLease: Case = {
  name: 'borrowed_lease',
  title: "B presents A's lease and token, as itself",
  proves: ['P4', 'I1'],
  async play(stage) {
    const { a, b, config } = stage;
    const headers = JSON.stringify(config.runs.headers);
    const isKnown = headers.includes('{secret}') || headers.includes('{run_id}');
    if (!headers.includes('{lease}') || !isKnown)
      throw new NotApplicable(
        'it needs headers with {lease} and a {secret} of the run: else the service knows no run but the lease',
      );
    if (config.runs.secret !== undefined && 'value' in config.runs.secret)
      throw new NotApplicable('all runs have one secret, so the service cannot tell them from each other');
    await a.hold();
    const before = await a.read();
    const borrowed = await b.write('a', before, { values: a.presented() });
    expectRefused(borrowed, "B's write with A's lease");
    await expectUnchanged(a, before, "B's write with A's lease");
  },
};

export const stoppedRun: Case = {
  name: 'stopped_run',
  title: 'a run is stopped, and writes on: with the newest token, from the current version',
  proves: ['R4', 'P3'],
  async play(stage) {
    const { a, c, operator } = stage;
    if (stage.decidesAlone)
      throw new NotApplicable(
        'targets of this kind decide without asking, until the credential has ended or the view is too old',
      );
    await c.hold();
    const { after } = await changeInOrder(c, 'a', await c.read());
    await operator.run.stopRun({ runId: c.runId, reason: 'a rehearsal' });
    stage.say(`${c.name} was stopped by an operator`);
    expectRefused(await c.write('b', after), 'the write of a stopped run');
    await a.hold();
    await expectUnchanged(a, after, 'the write of a stopped run');
  },
};

const LOOK_EVERY_MS = 200;

export const coordinatorDown: Case = {
  name: 'coordinator_down',
  title:
    'the service cannot reach the coordinator while the holder writes, or hears nothing from it, and then can again',
  proves: ['P8', 'C12'],
  async play(stage) {
    const { a } = stage;
    await a.hold();
    // What works with the coordinator: else a refusal without it, or after it, would say nothing.
    const first = await untilAccepted(stage, 'a');
    if (!isAccepted(first))
      throw new Undecided(`the holder's write was refused before the coordinator was taken away (${shown(first)})`);
    // Who fails closed where nobody is there may still take silence for a yes. It comes first: a client that has just lost its
    // coordinator tells silence and absence no more from each other.
    await writeMeanwhile(stage, (work) => withSilentCoordinator(stage, work));
    await writeMeanwhile(stage, (work) => withoutCoordinator(stage, work));
  },
};

/** For a service to give a coordinator up that says nothing. One that waits longer has not let anything in. */
const SILENT_MS = 20_000;

/** The holder writes while nobody can be asked. */
async function writeMeanwhile(stage: Stage, meanwhile: (work: () => Promise<void>) => Promise<void>): Promise<void> {
  const { a, decidesAlone } = stage;
  const before = await a.read();
  let writing: Promise<SentWrite> | undefined;
  await meanwhile(async () => {
    writing = a.write('b', before, { standsStill: true });
    writing.catch(() => undefined);
    const answer = await Promise.race([writing, pause(SILENT_MS, null, { ref: false })]);
    if (answer === null || !isAccepted(answer)) return;
    if (!decidesAlone) throw new Breach(`nobody could be asked, and the write was accepted (${shown(answer)})`);
    stage.say('accepted without asking, as this kind has it');
  });
  if (writing === undefined) return;
  // Behind a gateway nothing is read either while the coordinator is away.
  await readWhenBack(a);
  if (!isAccepted(await writing)) await expectUnchanged(a, before, 'a write that nobody could decide');
  // What was refused for want of a verdict can be done when there is one again.
  const last = await untilAccepted(stage, 'b');
  if (!isAccepted(last))
    throw new Breach(
      `${BACK_MS / 1_000} s after the coordinator is back the holder's write is still refused (${shown(last)})`,
    );
}

/** The last answer to the holder's write, which is sent anew until it is accepted: a service connects again in its own time. */
async function untilAccepted({ a, say }: Stage, change: ChangeName): Promise<Answer> {
  const until = performance.now() + BACK_MS;
  for (;;) {
    const answer = await a.write(change, await a.read());
    if (isAccepted(answer) || performance.now() > until) return answer;
    say('not yet');
    await pause(LOOK_EVERY_MS);
  }
}
