import { defineConfig } from 'vitest/config';

/** Pictures of the console's screens, by `npm run screenshots`; they are no tests. */
export default defineConfig({
  test: {
    include: ['test/screenshots/**/*.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    hookTimeout: 60_000,
  },
});
