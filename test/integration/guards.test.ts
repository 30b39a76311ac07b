import { describe } from 'vitest';
import { brokenGuard, conformingGuard } from '../support/guard-conformance.js';
import { postgresHarness } from '../support/guard-harness-postgres.js';
import { redisHarness } from '../support/guard-harness-redis.js';
import { redisMissing } from '../support/redis-server.js';

conformingGuard('the guard of Postgres', () => postgresHarness());
brokenGuard(
  'a guard of Postgres without its locks',
  () => postgresHarness('no locks'),
  // Both insert the same row here, and its key makes the second wait.
  'a leased write and the first open of the resource',
);
brokenGuard('a guard of Postgres in another transaction than the write', () => postgresHarness('another transaction'));

describe.skipIf(redisMissing !== '')(redisMissing === '' ? 'Redis' : `Redis (skipped: ${redisMissing})`, () => {
  conformingGuard('the guard of Redis', () => redisHarness());
  brokenGuard('a guard of Redis in another script than the write', () => redisHarness({ splitInTwo: true }));
});
