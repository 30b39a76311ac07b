import { expect, test } from 'vitest';
import { runMix } from '../harness/mix.js';
import { Random } from '../harness/random.js';
import { tell } from '../harness/report.js';
import { Stage } from '../harness/stage.js';
import { Workload } from '../harness/workload.js';
import { World } from '../harness/world.js';

// A short round of the fault harness, always the same one; `npm run faults` runs longer ones, and each case of the catalogue.

test('P1 to P10: the promises hold while networks, clocks, replicas and Postgres fail', async () => {
  const stage = new Stage();
  try {
    const result = await runMix(stage, 20_261, 15_000);
    const told: string[] = [];
    await tell('mix-20261', result, (line) => told.push(line));
    expect(told.join('\n')).toBe('');
    expect(result.answers).toBeGreaterThan(50);
    expect([...result.ways].filter(([, answers]) => answers === 0)).toEqual([]);
    expect(result.happened.size).toBeGreaterThan(1);
    expect(JSON.parse(JSON.stringify(result.history))).toEqual(result.history);
  } finally {
    expect(await stage.end()).toEqual([]);
  }
}, 240_000);

// Else it goes on asking those who are gone, and the harness never ends.
test('the workload ends with its stage, also when a round breaks off', async () => {
  const stage = new Stage();
  const world = await World.open(stage, 'broken off');
  const workload = Workload.start(world, new Random(1));
  await world.until(
    async () => world.recorder.answers,
    (answers) => answers > 20,
  );
  expect(await stage.end()).toEqual([]);
  expect(workload.going).toBe(false);
}, 240_000);
