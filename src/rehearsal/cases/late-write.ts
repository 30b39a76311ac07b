import { Breach, NotApplicable } from '../result.js';
import { type RehearsalRun, shortTtlMs } from '../run.js';
import {
  type Case,
  changeInOrder,
  expectRefused,
  expectUnchanged,
  readWhenBack,
  type Stage,
  withoutCoordinator,
} from '../stage.js';
import { isAccepted, type Snapshot, shown } from '../target.js';

/** A holder that was paused past its expiry wakes and writes (C7). */

/** A's lease expires while A stands still; B is granted the resource, opens it and writes. */
async function succeeded(stage: Stage): Promise<{ readonly readByA: Snapshot; readonly afterB: Snapshot }> {
  const { a, b, config } = stage;
  await a.hold({ ttlMs: shortTtlMs(config) });
  if (!a.isAlone) throw new NotApplicable('the action is optimistic: several runs may hold it at once');
  const readByA = await a.read();
  stage.say('A stands still, and its lease expires');
  await b.hold();
  const { after } = await changeInOrder(b, 'b', await b.read());
  return { readByA, afterB: after };
}

async function wake({ a }: Stage, readByA: Snapshot): ReturnType<RehearsalRun['write']> {
  const late = await a.write('late', readByA);
  if (isAccepted(late)) throw new Breach(`the write of a holder whose lease is over was accepted (${shown(late)})`);
  return late;
}

export const lateWrite: Case = {
  name: 'late_write',
  title: 'A is paused past its expiry; B is granted, opens and writes; A wakes and writes',
  proves: ['T4', 'C6', 'C7'],
  async play(stage) {
    const { readByA, afterB } = await succeeded(stage);
    const late = await wake(stage, readByA);
    await expectUnchanged(stage.b, afterB, 'the late write');
    expectRefused(late, 'the late write');
  },
};

export const lateWriteAlone: Case = {
  name: 'late_write_coordinator_down',
  title: 'the same, and A wakes while the service cannot reach the coordinator',
  proves: ['T4', 'C7'],
  async play(stage) {
    const { readByA, afterB } = await succeeded(stage);
    await withoutCoordinator(stage, async () => {
      const late = await wake(stage, readByA);
      stage.say(late.status >= 500 ? 'refused, as it cannot be decided' : 'refused, by the service itself');
    });
    // Behind a gateway nothing is read either while the coordinator is away.
    await readWhenBack(stage.b);
    await expectUnchanged(stage.b, afterB, 'the late write');
  },
};

export const lostHistory: Case = {
  name: 'lost_history',
  title: 'a token of before, with a lease that the coordinator does not know any more',
  proves: ['P2', 'C7'],
  async play(stage) {
    const { a, b, config } = stage;
    if (!JSON.stringify(config.runs.headers).includes('{lease}'))
      throw new NotApplicable('runs present a credential, which nobody can make up; it needs headers with {lease}');
    await a.hold();
    if (!a.isAlone) throw new NotApplicable('the action is optimistic: its token keeps nobody away');
    const readByA = await a.read();
    const before = a.presented();
    await a.letGo();
    await b.hold();
    const { after } = await changeInOrder(b, 'b', await b.read());
    stage.say('A presents its token of before with a lease that no log has, as after a restored backup');
    const late = await a.write('late', readByA, { values: { ...before, lease: '0'.repeat(32) } });
    expectRefused(late, 'a token of before');
    await expectUnchanged(b, after, 'a token of before');
  },
};
