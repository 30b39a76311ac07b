import pg from 'pg';
import { expect, it } from 'vitest';
import { isPooledPrepared, toStoreError } from '../../src/storage/postgres/errors.js';
import { createTestDatabase } from '../support/postgres.js';

// What a transaction-mode pooler makes of named statements is told with the setting that avoids it (F11).
it('a statement that another client of the pooler has prepared, or that another server has, names the setting', async () => {
  const database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    for (const sql of ['PREPARE twice AS SELECT 1; PREPARE twice AS SELECT 1', 'EXECUTE never']) {
      const error = toStoreError(await client.query(sql).catch((reason: unknown) => reason), 'read');
      expect(isPooledPrepared(error)).toBe(true);
      expect(error.message).toContain('WRIT_DATABASE_PREPARED must be off');
    }
    const other = toStoreError(await client.query('SELECT 1/0').catch((reason: unknown) => reason), 'read');
    expect([isPooledPrepared(other), other.message.includes('WRIT_')]).toEqual([false, false]);
  } finally {
    await client.end();
    await database.drop();
  }
});
