import { randomUUID } from 'node:crypto';
import { Breach, NotApplicable } from '../result.js';
import type { SentWrite } from '../run.js';
import {
  type Case,
  changeInOrder,
  expectRefused,
  expectStale,
  expectUnchanged,
  requireKey,
  type Stage,
} from '../stage.js';
import { isAccepted, type Snapshot, shown } from '../target.js';

/** Idempotency keys suppress duplicates, and settle no disagreement: the two are independent of each other (W2). */

export const resend: Case = {
  name: 'resend',
  title: "A's answer is lost; B changes; A sends the same again, and then the same with a new key",
  proves: ['T2', 'W2'],
  async play(stage) {
    requireKey(stage);
    const { a } = stage;
    const { readByA, first, afterB } = await answerLost(stage);
    const again = await a.write('a', readByA, { key: first.key });
    await expectUnchanged(a, afterB, 'what was sent again by its key');
    if (again.status !== first.status)
      throw new Breach(
        `the first try was done (${shown(first)}), and the same by its key is answered ${shown(again)}: the run would take it for not done`,
      );
    const anew = await a.write('a', readByA);
    expectStale(anew, 'the same change by a new key, from the old version,');
    expectRefused(await a.write('a', readByA, { key: anew.key }), 'the refused change, sent again by its key,');
    await expectUnchanged(a, afterB, 'the refused change');
  },
};

/** A has written, and does not know it; meanwhile B has written. A holds the resource again. */
async function answerLost({ a, b, say }: Stage): Promise<{ readByA: Snapshot; first: SentWrite; afterB: Snapshot }> {
  await a.hold();
  const readByA = await a.read();
  const { answer: first } = await changeInOrder(a, 'a', readByA);
  say('the answer to A is thrown away, as by a timeout');
  if (a.isAlone) await a.letGo();
  await b.hold();
  const { after: afterB } = await changeInOrder(b, 'b', await b.read());
  if (b.isAlone) {
    await b.letGo();
    await a.hold();
  }
  return { readByA, first, afterB };
}

const AT_ONCE_ROUNDS = 4;
/** Told that the first is still under way: try again later (W2). */
const IN_FLIGHT = new Set([409, 425, 429, 503]);

export const sameKeyAtOnce: Case = {
  name: 'same_key_at_once',
  title: 'the same request twice at the same time, by one key',
  proves: ['W2'],
  async play(stage) {
    requireKey(stage);
    const { a } = stage;
    await a.hold();
    for (let round = 1; round <= AT_ONCE_ROUNDS; round += 1) {
      const from = await a.read();
      const key = randomUUID();
      const answers = await Promise.all([a.write('a', from, { key }), a.write('a', from, { key })]);
      const done = answers.find(isAccepted);
      if (done === undefined) throw new Breach(`neither of two that are the same was done (round ${round})`);
      const wrong = answers.find((answer) => answer.status !== done.status && !IN_FLIGHT.has(answer.status));
      if (wrong !== undefined)
        throw new Breach(
          `one of two that are the same was done (${shown(done)}), and the other is told ${shown(wrong)}, not the same and not that it is under way (round ${round})`,
        );
      const after = await a.read();
      const again = await a.write('a', from, { key });
      if (again.status !== done.status)
        throw new Breach(`it was done (${shown(done)}), and sent once more by its key it is answered ${shown(again)}`);
      await expectUnchanged(a, after, 'what was sent once more by its key');
    }
  },
};

export const keyWithAnotherBody: Case = {
  name: 'key_with_another_body',
  title: 'a key that was used, with another body',
  proves: ['W2'],
  async play(stage) {
    requireKey(stage);
    const { a, resource } = stage;
    if (resource.changes.b.body === undefined)
      throw new NotApplicable('change b has no body that could be another one');
    await a.hold();
    const before = await a.read();
    const { answer: first, after } = await changeInOrder(a, 'a', before);
    const other = await a.write('b', before, { key: first.key });
    if (isAccepted(other))
      throw new Breach(
        `the key of change a, with the body of change b, is answered ${shown(other)}: the run would take b for done`,
      );
    expectRefused(other, 'a used key with another body');
    await expectUnchanged(a, after, 'a used key with another body');
    const current = await a.write('b', after, { key: first.key });
    expectRefused(current, 'a used key with another body, on the current version,');
    await expectUnchanged(a, after, 'a used key with another body, on the current version,');
  },
};
