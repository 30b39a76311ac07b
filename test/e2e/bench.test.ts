import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const BENCH = fileURLToPath(new URL('../bench/index.mjs', import.meta.url));

/** What it measures is not judged here: that it can measure is. */
it('a smoke run of the bench starts a coordinator of its own, measures it, and tells what it found as JSON', async () => {
  const args = [BENCH, '--quick', '--only', 'renewals', '--json', '-'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 110_000 });
  const { rows } = JSON.parse(stdout) as { rows: readonly { name: string; value: number; unit: string }[] };
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) expect(row).toMatchObject({ name: expect.any(String), unit: expect.any(String) });
  expect(rows.map(({ value }) => Number.isFinite(value))).not.toContain(false);
});
