import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { atLeast, settle } from '../bench.mjs';
import { median, rangeOf } from '../measure.mjs';
import { hold } from './checks.mjs';

/** @import { Bench } from '../bench.mjs' */
/** @import { Row } from '../report.mjs' */

const TARGET = 1_000_000;
/** Then the event loop has a turn, so that the view hears of changes and marks. */
const TOGETHER = 10_000;
const KNOWN_WITHIN_MS = 20_000;

/**
 * Decisions by a view that a watch feeds, one after another in this process, spread over many live leases; each is looked
 * up by what is presented.
 * @param {Bench} bench @returns {Promise<Row[]>}
 */
export async function view(bench) {
  const coordinator = await bench.launcher.lend('view');
  const held = await hold(coordinator, bench.scale.checkedLeases, 'seen', 'checks');
  const { connectWrit, createFenceView } = await import(
    pathToFileURL(join(bench.launcher.options.dist, 'clients', 'target', 'index.js')).href
  );
  const client = connectWrit({ endpoint: coordinator.grpc, token: coordinator.tokens.target });
  const seen = createFenceView({ client });
  bench.launcher.resources.add(async () => {
    seen.close();
    client.close();
  });
  const questions = held.map(({ leaseId, token, resources }) => ({
    leaseId,
    writes: [{ resource: resources[0], action: 'set', token }],
  }));
  await known(seen, questions);
  bench.progress('decisions by a view');
  await settle(bench, coordinator);
  await decide(seen, questions, bench.scale.warmUpMs);
  const rates = [];
  for (let i = 0; i < bench.scale.repetitions; i += 1)
    rates.push(await decide(seen, questions, bench.scale.repetitionMs));
  seen.close();
  client.close();
  await bench.launcher.takeBack(coordinator);
  const value = median(rates);
  return [
    {
      name: 'decisions by a view, on one core',
      value,
      unit: 'decisions/s',
      spread: rangeOf(rates),
      target: `${TARGET.toLocaleString('en-US')}/s at least`,
      reached: atLeast(value, TARGET),
      note: `over ${held.length} leases, ${(1e9 / value).toFixed(0)} ns each`,
    },
  ];
}

/** @param {any} seen @param {any[]} questions */
async function known(seen, questions) {
  const until = performance.now() + KNOWN_WITHIN_MS;
  while (!questions.every((question) => seen.check(question).allowed)) {
    if (performance.now() > until) throw new Error(`not known: ${seen.check(questions[0]).reason}`);
    await pause(20);
  }
}

/** How many in a second. @param {any} seen @param {any[]} questions @param {number} milliseconds */
async function decide(seen, questions, milliseconds) {
  const from = performance.now();
  let count = 0;
  while (performance.now() - from < milliseconds) {
    for (let i = 0; i < TOGETHER; i += 1) {
      const { allowed, reason } = seen.check(questions[count++ % questions.length]);
      if (!allowed) throw new Error(`denied: ${reason}`);
    }
    await nextTurn();
  }
  return (count * 1_000) / (performance.now() - from);
}
