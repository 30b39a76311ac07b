import { expect, test } from 'vitest';
import { runMix } from '../harness/mix.js';
import { tell } from '../harness/report.js';
import { Stage } from '../harness/stage.js';

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
