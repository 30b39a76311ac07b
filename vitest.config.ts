import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    execArgv: ['--import', new URL('test/support/built-threads.mjs', import.meta.url).href],
    // Real processes and a real Postgres share the machine: a slow machine is no failure.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: process.env.CI === 'true' ? ['default', 'json'] : ['default'],
    outputFile: { json: 'test-results/vitest.json' },
  },
});
