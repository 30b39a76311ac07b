import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Most files wait for processes of their own more than they compute: on two cores one worker takes twice as long.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    execArgv: ['--import', new URL('test/support/built-children.mjs', import.meta.url).href],
    // Real processes and a real Postgres share the machine: a slow machine is no failure.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    // Nor is it one that the machine stood still at a bad moment: what passes on a second attempt passes, and is named
    // at the end of the run, to be mended. A property that failed has found a counterexample, and gets no second try.
    retry: { count: 1, condition: /^(?!Property failed)/ },
    setupFiles: [
      ...(process.env.WRIT_SEED === undefined ? [] : ['test/support/seeded-properties.ts']),
      // Whether there can be one: no first attempt passes.
      ...(process.env.WRIT_TEST_TWICE === undefined ? [] : ['test/support/fail-first-attempts.ts']),
    ],
    reporters: ['default', 'test/support/second-attempts.ts', ...(process.env.CI === 'true' ? ['json'] : [])],
    outputFile: { json: 'test-results/vitest.json' },
  },
});
