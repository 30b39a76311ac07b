import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cli } from '../support/cli.js';
import { createTestDatabase } from '../support/postgres.js';

/** Debian's interpreter, for which Debian's python3-psycopg2 is: another python3 may come first on the path. */
const PYTHON = '/usr/bin/python3';
const SCRIPT = fileURLToPath(new URL('guard_client.py', import.meta.url));
const GUIDE = new URL('../../docs/target-writes.md', import.meta.url);

const missing = whatIsMissing();
if (missing !== '') console.warn(`skipped: the guard from Python: ${missing}`);

function whatIsMissing(): string {
  try {
    execFileSync(PYTHON, ['-c', 'import psycopg2'], { stdio: 'pipe' });
    return '';
  } catch (error) {
    const said = (error as { stderr?: Buffer }).stderr?.toString().trim().split('\n').at(-1);
    return `${said || (error as Error).message}; on Debian: apt-get install python3-psycopg2`;
  }
}

describe(missing === '' ? 'the guard from Python' : `the guard from Python (skipped: ${missing})`, () => {
  it.skipIf(missing !== '')('refuses a delayed write, by the SQL that the command line prints (C7)', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const { code, stdout: sql } = await cli(['guard', 'sql']);
    expect(code).toBe(0);
    await client.query(sql);
    await client.query(`CREATE TABLE release (env text PRIMARY KEY, image text NOT NULL, version bigint NOT NULL);
                        INSERT INTO release VALUES ('prod-eu', 'shop:1', 7)`);
    const token = BigInt(Date.now()) * 1_000n;
    const args = [SCRIPT, database.url, String(token), String(token + 1n)];
    const { stdout } = await promisify(execFile)(PYTHON, args, { timeout: 30_000 });
    expect(JSON.parse(stdout)).toEqual({ first: 8, conflict: null, late: 'stale_token', second: 9 });
    const { rows } = await client.query('SELECT image FROM release');
    expect(rows).toEqual([{ image: 'shop:4' }]);
    await client.end();
  });
});

it('the guide shows this service, line by line', () => {
  expect(readFileSync(GUIDE, 'utf8')).toContain(`\`\`\`python\n${readFileSync(SCRIPT, 'utf8')}\`\`\`\n`);
});
