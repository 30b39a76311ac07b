import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Most files wait for processes of their own more than they compute: on two cores one worker takes twice as long.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    execArgv: ['--import', new URL('test/support/built-threads.mjs', import.meta.url).href],
    // Real processes and a real Postgres share the machine: a slow machine is no failure.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    reporters: process.env.CI === 'true' ? ['default', 'json'] : ['default'],
    outputFile: { json: 'test-results/vitest.json' },
  },
});
