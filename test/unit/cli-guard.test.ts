import { expect, it } from 'vitest';
import { guardSchemaSql } from '../../src/clients/target/postgres-guard-sql.js';
import { cli } from '../support/cli.js';

it('writ guard sql prints the guard as the target kit installs it', async () => {
  expect((await cli(['guard', 'sql'])).stdout).toBe(`${guardSchemaSql()}\n`);
  expect((await cli(['guard', 'sql', '--schema', 'shop_guard'])).stdout).toBe(`${guardSchemaSql('shop_guard')}\n`);
  expect((await cli(['guard', 'sql', '--json'])).json()).toEqual({ schema: 'writ_guard', sql: guardSchemaSql() });
});

it('refuses a schema that is no plain name (2)', async () => {
  const { code, stderr, stdout } = await cli(['guard', 'sql', '--schema', 'a"; DROP']);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain("the guard's schema must be a plain lower-case name");
});
