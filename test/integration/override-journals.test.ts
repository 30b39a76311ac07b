import { appendFile, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OverrideRecord } from '../../src/clients/target/override.js';
import { type FileOverrideJournal, fileOverrideJournal } from '../../src/clients/target/override-file-journal.js';
import type { OverrideJournal } from '../../src/clients/target/override-journal.js';
import { postgresOverrideJournal } from '../../src/clients/target/override-postgres-journal.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

const override = {
  id: 'o-1',
  who: 'alice@example.com',
  why: 'the release is broken; "quoted", and ünïcode',
  until: new Date('2026-12-01T10:00:00.123Z'),
  patterns: ['release/{env}'],
};

const began: OverrideRecord = { override, use: null };
const used = (id: string, requestId = id): OverrideRecord => ({
  override,
  use: {
    id,
    requestId,
    usedAt: new Date('2026-12-01T09:30:00.456Z'),
    writes: [{ resource: 'release/prod-eu', action: 'promote', observedVersion: '7' }],
  },
});

let directory: string;
let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-journal-'));
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: 8 });
  pool.on('error', () => undefined);
});

afterAll(async () => {
  for (const journal of opened) await journal.close();
  await pool?.end();
  await database?.drop();
  await rm(directory, { recursive: true, force: true });
});

let serial = 0;

/** A journal, and how it is opened again after its process has gone. */
interface Kind {
  readonly open: (name: string) => Promise<OverrideJournal>;
}

const opened: FileOverrideJournal[] = [];

const kinds: [string, Kind][] = [
  [
    'a file',
    {
      open: async (name) => {
        const journal = await fileOverrideJournal(join(directory, name));
        opened.push(journal);
        return journal;
      },
    },
  ],
  [
    'Postgres',
    {
      open: async (name) => {
        const journal = postgresOverrideJournal(pool, name);
        await Promise.all([journal.install(), journal.install(), journal.install()]);
        return journal;
      },
    },
  ],
];

describe.each(kinds)('a journal in %s', (_name, { open }) => {
  it('keeps records in order, each once, also after a restart', async () => {
    const name = `journal_${++serial}`;
    const journal = await open(name);
    await journal.append(began);
    for (const id of ['a', 'b', 'a', 'c', 'b']) await journal.append(used(id));
    expect(await journal.pending(100)).toEqual([began, used('a'), used('b'), used('c')]);
    expect(await journal.pending(2)).toEqual([began, used('a')]);
    const again = await open(name);
    expect(await again.pending(100)).toEqual([began, used('a'), used('b'), used('c')]);
  });

  it('keeps every use, also of requests that have the same id (C12)', async () => {
    const name = `journal_${++serial}`;
    const journal = await open(name);
    for (const id of ['a', 'b', 'c']) await journal.append(used(id, 'inc-42'));
    await journal.reported(used('a', 'inc-42'));
    expect(await journal.pending(100)).toEqual([used('b', 'inc-42'), used('c', 'inc-42')]);
    expect(await (await open(name)).pending(100)).toEqual([used('b', 'inc-42'), used('c', 'inc-42')]);
  });

  it('forgets to tell what was told, and does not take it again', async () => {
    const name = `journal_${++serial}`;
    const journal = await open(name);
    for (const id of ['a', 'b', 'c']) await journal.append(used(id));
    await journal.reported(used('b'));
    await journal.reported(used('b'));
    await journal.reported(used('never appended'));
    await journal.append(used('b'));
    expect(await journal.pending(100)).toEqual([used('a'), used('c')]);
    const again = await open(name);
    await again.append(used('b'));
    expect(await again.pending(100)).toEqual([used('a'), used('c')]);
  });

  it('keeps what many append at a time', async () => {
    const journal = await open(`journal_${++serial}`);
    const ids = Array.from({ length: 50 }, (_, n) => `r-${n}`);
    await Promise.all(ids.map((id) => journal.append(used(id))));
    expect((await journal.pending(100)).map(({ use }) => use?.requestId).sort()).toEqual([...ids].sort());
  });
});

describe('a journal in a file', () => {
  it('cuts off what a crash left of a line, and goes on behind it', async () => {
    const path = join(directory, `torn-${++serial}`);
    const first = await fileOverrideJournal(path);
    await first.append(used('a'));
    await first.close();
    const { size } = await stat(path);
    await appendFile(path, '{"record":{"override":{"id":"o-');
    const second = await fileOverrideJournal(path);
    expect((await stat(path)).size).toBe(size);
    await second.append(used('b'));
    await second.close();
    const third = await fileOverrideJournal(path);
    expect(await third.pending(100)).toEqual([used('a'), used('b')]);
    await third.close();
  });

  it('of before uses had ids knows them by their requests', async () => {
    const path = join(directory, `old-${++serial}`);
    const { id: _, ...use } = used('r-1').use ?? { id: '' };
    await writeFile(path, `${JSON.stringify({ record: { override, use } })}\n`);
    const journal = await fileOverrideJournal(path);
    expect(await journal.pending(100)).toEqual([used('r-1')]);
    await journal.reported(used('r-1'));
    await journal.close();
    const again = await fileOverrideJournal(path);
    expect(await again.pending(100)).toEqual([]);
    await again.close();
  });

  it('is not opened when a line in the middle is no record: nobody knows then what is missing', async () => {
    const path = join(directory, `spoilt-${++serial}`);
    await writeFile(path, 'no record\n');
    await expect(fileOverrideJournal(path)).rejects.toThrow();
    await truncate(path, 0);
    await (await fileOverrideJournal(path)).close();
  });

  it('is readable by its owner alone', async () => {
    const path = join(directory, `private-${++serial}`);
    await (await fileOverrideJournal(path)).close();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it('takes nothing more when too much is untold', async () => {
    const path = join(directory, `full-${++serial}`);
    const line = (id: string) => JSON.stringify({ record: { override, use: { ...used(id).use } } });
    await writeFile(path, `${Array.from({ length: 10_000 }, (_, n) => line(`r-${n}`)).join('\n')}\n`);
    const journal = await fileOverrideJournal(path);
    await expect(journal.append(used('one more'))).rejects.toThrow('10000 uses of overrides are not reported yet');
    await journal.reported(used('r-0'));
    await journal.append(used('one more'));
    expect((await readFile(path, 'utf8')).trimEnd().split('\n')).toHaveLength(10_002);
    await journal.close();
  });
});

describe('a journal in Postgres', () => {
  it('takes nothing more when too much is untold', async () => {
    const name = `full_${++serial}`;
    const journal = postgresOverrideJournal(pool, name);
    await journal.install();
    await pool.query(`INSERT INTO ${name} (key, record) SELECT 'k' || n, '{}' FROM generate_series(1, 10000) AS n`);
    await expect(journal.append(used('one more'))).rejects.toThrow('10000 uses of overrides are not reported yet');
    await pool.query(`UPDATE ${name} SET reported_at = now() WHERE key = 'k1'`);
    await journal.append(used('one more'));
  });

  it('has a plain name', () => {
    expect(() => postgresOverrideJournal(pool, 'a; drop table b')).toThrow(RangeError);
  });
});
