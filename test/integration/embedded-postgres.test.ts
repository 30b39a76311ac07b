import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmod, chown, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/storage/postgres/embedded.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { createTestDatabase, killAndWait, startPrivatePostgres } from '../support/postgres.js';

const IS_ROOT = process.geteuid?.() === 0;
const NOBODY = 65_534;
const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));

let scratch: string;
let dataDir: string;
let fixture: string;
const servers: EmbeddedPostgres[] = [];
const children: ChildProcess[] = [];

beforeAll(async () => {
  // Inside node_modules, so that a plain node process finds the packages from there.
  const cache = join(REPOSITORY, 'node_modules', '.cache');
  await mkdir(cache, { recursive: true });
  fixture = await mkdtemp(join(cache, 'writ-embedded-'));
  await chmod(fixture, 0o755);
  await writeFile(join(fixture, 'package.json'), '{ "type": "module" }');
  await mkdir(join(fixture, 'embedded'));
  const room = join(REPOSITORY, 'src/storage/postgres');
  const parts = await readdir(join(room, 'embedded'));
  for (const file of ['embedded.ts', ...parts.map((name) => join('embedded', name))]) {
    const { code } = await transform(await readFile(join(room, file), 'utf8'), {
      jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
      module: { type: 'es6' },
    });
    await writeFile(join(fixture, file.replace(/\.ts$/, '.js')), code);
  }
  // Starts a server, says so, and lives on until it is killed.
  await writeFile(
    join(fixture, 'start.mjs'),
    `import { startEmbeddedPostgres } from './embedded.js';
     const say = (line) => process.stdout.write(JSON.stringify(line) + '\\n');
     setInterval(() => {}, 1000);
     try {
       const server = await startEmbeddedPostgres({ dataDir: process.argv[2], onLog: (log) => say({ log }) });
       const { url, pid, port, adopted } = server;
       say({ url, pid, port, adopted });
     } catch (error) {
       say({ error: error.message });
     }`,
  );
});

afterAll(() => rm(fixture, { recursive: true, force: true }));

beforeEach(async () => {
  scratch = await makeTestDirectory('embedded');
  dataDir = join(scratch, 'data');
});

afterEach(async () => {
  for (const child of children.splice(0)) if (child.pid !== undefined) await killAndWait(child.pid);
  for (const server of servers.splice(0)) await server.stop();
  // Whatever a child left behind that the test, having failed, did not adopt.
  const left = await stat(join(dataDir, 'pgdata', 'postmaster.pid')).catch(() => undefined);
  if (left !== undefined) await (await startEmbeddedPostgres({ dataDir })).stop();
  await rm(scratch, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});

async function start(options: Partial<Parameters<typeof startEmbeddedPostgres>[0]> = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, ...options });
  servers.push(server);
  return server;
}

interface Said {
  readonly url?: string;
  readonly pid?: number;
  readonly adopted?: boolean;
  readonly error?: string;
  readonly log?: string;
}

/** Starts the server from a process of its own; returns what it said first that `wanted` accepts. */
async function startInChild(
  options: { prefix?: readonly string[]; script?: string; wanted?: (said: Said) => boolean } = {},
): Promise<{ child: ChildProcess; said: Said }> {
  const { prefix = [], script = join(fixture, 'start.mjs'), wanted = (said) => said.log === undefined } = options;
  const [file = 'node', ...args] = [...prefix, process.execPath, script, dataDir];
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'], cwd: '/' });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as Said;
    if (wanted(said)) return { child, said };
  }
  throw new Error('the child ended without a word');
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

async function uidOf(pid: number): Promise<number> {
  return Number(/^Uid:\s+\d+\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

function isRunning(pid: number): boolean {
  return (
    spawnSync('ps', ['-o', 'stat=', '-p', String(pid)])
      .stdout.toString()
      .trim()
      .replace(/^Z.*/, '') !== ''
  );
}

describe('a first start', () => {
  it('creates a durable UTF8 database that only the loopback and the password open', async () => {
    const lines: string[] = [];
    const server = await start({ onLog: (line) => lines.push(line) });

    expect(server.adopted).toBe(false);
    expect(server.url).toMatch(/^postgres:\/\/writ:[\w-]{40,}@127\.0\.0\.1:\d+\/writ$/);
    const [row] = await query(
      server.url,
      `SELECT current_database() AS database, pg_encoding_to_char(encoding) AS encoding, datcollate AS locale,
        current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit,
        current_setting('data_checksums') AS checksums, current_setting('listen_addresses') AS addresses,
        current_setting('unix_socket_directories') AS sockets, current_setting('max_connections') AS connections
       FROM pg_database WHERE datname = current_database()`,
    );
    expect(row).toEqual({
      database: 'writ',
      encoding: 'UTF8',
      locale: 'C',
      fsync: 'on',
      commit: 'on',
      checksums: 'on',
      addresses: '127.0.0.1',
      sockets: '',
      connections: '100',
    });
    const hba = await query(server.url, 'SELECT DISTINCT auth_method FROM pg_hba_file_rules');
    expect(hba).toEqual([{ auth_method: 'scram-sha-256' }]);

    expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
    expect((await stat(join(dataDir, 'password'))).mode & 0o777).toBe(0o600);
    expect((await readdir(dataDir)).sort()).toEqual(['password', 'pgdata', 'postgres.log']);
    const password = new URL(server.url).password;
    expect(lines.join('\n') + (await readFile(join(dataDir, 'postgres.log'), 'utf8'))).not.toContain(password);
    await expect(query(server.url.replace(password, 'wrong'), 'SELECT 1')).rejects.toMatchObject({ code: '28P01' });
  });

  it('takes the port and the settings it is given, and refuses those that durability rests on', async () => {
    const port = await unusedPort();
    const server = await start({ port, settings: { max_connections: '23' } });
    expect(server.port).toBe(port);
    expect(await query(server.url, 'SHOW max_connections')).toEqual([{ max_connections: '23' }]);
    for (const name of ['fsync', 'Synchronous_Commit', 'listen_addresses', 'port']) {
      await expect(startEmbeddedPostgres({ dataDir, settings: { [name]: 'off' } })).rejects.toThrow(name);
    }
  });

  it('heals an initdb that was killed half-way', async () => {
    // Where the machine stands still at the wrong moment it is whole before its starter is killed: then once more.
    for (let isHalf = false; !isHalf; ) {
      const { child } = await startInChild({ wanted: (said) => said.log?.startsWith('creating') === true });
      await waitFor(async () => (await readdir(dataDir)).some((name) => /^(init-|pgdata$)/.test(name)));
      await killAndWait(child.pid ?? 0);
      isHalf = !(await readdir(dataDir)).includes('pgdata');
      if (isHalf) continue;
      await (await start()).stop();
      await rm(dataDir, { recursive: true });
    }
    const server = await start();
    expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect((await readdir(dataDir)).sort()).toEqual(['password', 'pgdata', 'postgres.log']);
  });

  it('says at once what the server said when it does not come up', async () => {
    const wrong = { shared_buffers: 'plenty' };
    await expect(start({ settings: wrong })).rejects.toThrow(/ended while it started[\s\S]*"plenty"/);
    const squatter = createServer();
    const port = await new Promise<number>((done) => {
      squatter.listen(0, '127.0.0.1', () => done((squatter.address() as AddressInfo).port));
    });
    try {
      await expect(start({ port })).rejects.toThrow(/could not bind[\s\S]*Address already in use/);
    } finally {
      squatter.close();
    }
    // Neither failure is in the way of the next start.
    expect((await start()).adopted).toBe(false);
  });
});

describe('a later start', () => {
  it('finds the data of the one before, after a stop that is idempotent and complete', async () => {
    const first = await start();
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS value');
    await Promise.all([first.stop(), first.stop()]);
    await first.stop();
    expect(isRunning(first.pid)).toBe(false);

    const second = await start();
    expect(second.adopted).toBe(false);
    expect(new URL(second.url).password).toBe(new URL(first.url).password);
    expect(await query(second.url, 'SELECT value FROM kept')).toEqual([{ value: 42 }]);
  });

  it('adopts the server of a parent that was killed, and can stop it', async () => {
    const { child, said } = await startInChild();
    expect(said).toMatchObject({ adopted: false });
    await query(said.url ?? '', 'CREATE TABLE kept AS SELECT 42 AS value');
    const watcher = new pg.Client({ connectionString: said.url });
    await watcher.connect();
    await killAndWait(child.pid ?? 0);
    // The very same server: a connection that was open all the time still works.
    expect((await watcher.query('SELECT value FROM kept')).rows).toEqual([{ value: 42 }]);
    await watcher.end();

    const adopted = await start();
    expect(adopted).toMatchObject({ adopted: true, pid: said.pid, url: said.url });
    await adopted.stop();
    expect(isRunning(adopted.pid)).toBe(false);
    expect((await start()).adopted).toBe(false);
  });

  it('finds everything committed after a kill -9 of Postgres itself', async () => {
    const server = await startPrivatePostgres();
    try {
      await query(server.url, 'CREATE TABLE kept (value int)');
      const client = new pg.Client({ connectionString: server.url });
      client.on('error', () => undefined);
      await client.connect();
      for (let value = 1; value <= 50; value += 1) await client.query('INSERT INTO kept VALUES ($1)', [value]);
      const before = server.pid;
      await server.kill9();
      expect(await readFile(join(server.dataDir, 'pgdata', 'postmaster.pid'), 'utf8')).toContain(String(before));

      await server.restart();
      expect(server.pid).not.toBe(before);
      expect(await query(server.url, 'SELECT count(*)::int AS n FROM kept')).toEqual([{ n: 50 }]);
    } finally {
      await server.stop();
    }
  });

  it('waits for a backend that outlives its killed postmaster', async () => {
    const first = await start();
    const client = new pg.Client({ connectionString: first.url });
    client.on('error', () => undefined);
    await client.connect();
    const backend = Number((await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid);
    // It waits for nothing, only looks for a file again and again, and so does not notice that the postmaster is gone.
    const busy = client
      .query(
        `DO $$ DECLARE till timestamptz := clock_timestamp() + interval '1 minute'; BEGIN
           WHILE (pg_stat_file('go', true)).size IS NULL AND clock_timestamp() < till LOOP END LOOP; END $$`,
      )
      .catch(() => undefined);
    await waitFor(async () => (await query(first.url, BUSY.replace('$1', String(backend)))).length === 1);
    await killAndWait(first.pid);
    const starting = start();
    await waitFor(async () => (await readdir(dataDir)).includes('start.lock'));
    expect(isRunning(backend)).toBe(true);
    await writeFile(join(dataDir, 'pgdata', 'go'), '');
    const second = await starting;
    expect(second.adopted).toBe(false);
    expect(isRunning(backend)).toBe(false);
    await busy;
  });

  it('is not held up by a postmaster.pid or a lock that names a process of another kind', async () => {
    const first = await start();
    await first.stop();
    // A process id that came round again, as in a container; of the same user, since Postgres itself minds no other.
    const { uid, gid } = await stat(join(dataDir, 'pgdata'));
    const stranger = spawn('sleep', ['600'], IS_ROOT ? { uid, gid, cwd: '/' } : {});
    children.push(stranger);
    const lines = [stranger.pid, join(dataDir, 'pgdata'), 1, first.port, '', '127.0.0.1', '', 'ready   '];
    await writeFile(join(dataDir, 'pgdata', 'postmaster.pid'), `${lines.join('\n')}\n`);
    await writeFile(join(dataDir, 'start.lock'), JSON.stringify({ pid: process.pid, started: 'long ago' }));
    await writeFile(join(dataDir, 'start.lock.0123'), JSON.stringify({ pid: process.pid, started: 'long ago' }));
    const second = await start();
    expect(second.adopted).toBe(false);
    expect((await readdir(dataDir)).sort()).toEqual(['password', 'pgdata', 'postgres.log']);
    await second.stop();

    await writeFile(join(dataDir, 'pgdata', 'postmaster.pid'), '');
    expect((await start()).adopted).toBe(false);
  });

  it('refuses a directory of another major version and a lost password, naming the file', async () => {
    await (await start()).stop();
    const password = await readFile(join(dataDir, 'password'), 'utf8');
    await rm(join(dataDir, 'password'));
    await expect(start()).rejects.toThrow(join(dataDir, 'password'));
    await writeFile(join(dataDir, 'password'), password, { mode: 0o600 });
    await writeFile(join(dataDir, 'pgdata', 'PG_VERSION'), '14\n');
    await expect(start()).rejects.toThrow(/made by Postgres 14/);
  });

  it('keeps the log of the server bounded', async () => {
    await (await start()).stop();
    await writeFile(join(dataDir, 'postgres.log'), Buffer.alloc(2 << 20, 'x'));
    await start();
    expect((await stat(join(dataDir, 'postgres.log'))).size).toBeLessThan(64 << 10);
    expect((await stat(join(dataDir, 'postgres.log.1'))).size).toBe(2 << 20);
  });
});

describe('several starts at once', () => {
  it('start one server, which the others adopt, across processes', async () => {
    const results = await Promise.all([startInChild(), startInChild(), startInChild()]);
    const said = results.map((result) => result.said);
    expect(said.filter((one) => one.adopted === false)).toHaveLength(1);
    expect(said.filter((one) => one.adopted === true)).toHaveLength(2);
    expect(new Set(said.map((one) => one.pid)).size).toBe(1);
    expect(await start()).toMatchObject({ adopted: true, pid: said[0]?.pid });
  });

  it('start one server within a process, also after a crash of the one before', async () => {
    await killAndWait((await start()).pid);
    const started = await Promise.all([start(), start(), start()]);
    expect(started.filter((one) => !one.adopted)).toHaveLength(1);
    expect(new Set(started.map((one) => one.url)).size).toBe(1);
  });

  it('wait for a server that is shutting down, then start one anew', async () => {
    const first = await start();
    const client = new pg.Client({ connectionString: first.url });
    await client.connect();
    // A smart shutdown lasts as long as its last client.
    process.kill(first.pid, 'SIGTERM');
    await waitFor(async () => (await readFile(join(dataDir, 'pgdata', 'postmaster.pid'), 'utf8')).includes('stopping'));
    const starting = start();
    await waitFor(async () => (await readdir(dataDir)).includes('start.lock'));
    expect(isRunning(first.pid)).toBe(true);
    await client.end();
    const second = await starting;
    expect(second.adopted).toBe(false);
    expect(second.pid).not.toBe(first.pid);
    expect(await query(second.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });
});

if (!IS_ROOT) console.warn('skipped: the embedded Postgres as root: these tests run only for root');

describe.skipIf(!IS_ROOT)('as root (skipped for other users)', () => {
  it('runs as another user in a directory that only root can enter, and gives away nothing but pgdata', async () => {
    expect((await stat(scratch)).mode & 0o777).toBe(0o700);
    const server = await start();
    const uid = await uidOf(server.pid);
    expect(uid).not.toBe(0);
    expect((await stat(join(dataDir, 'pgdata'))).uid).toBe(uid);
    for (const name of ['.', 'password', 'postgres.log']) expect((await stat(join(dataDir, name))).uid).toBe(0);
  });

  it('runs binaries in a clone that only root can enter, also without dac_read_search as in a container', async () => {
    const clone = join(scratch, 'clone');
    const modules = join(clone, 'node_modules');
    await mkdir(modules, { recursive: true });
    // Links where the file system allows, since the binaries take 80 MB.
    const installed = join(REPOSITORY, 'node_modules');
    const needed = (await readdir(installed)).filter((name) => /^(pg|postgres-|xtend|split2)|embedded-/.test(name));
    const copied = ['-al', '-a'].some((how) => {
      return spawnSync('cp', [how, ...needed.map((name) => join(installed, name)), modules]).status === 0;
    });
    expect(copied).toBe(true);
    await cp(fixture, clone, { recursive: true });
    const container = ['setpriv', '--bounding-set=-dac_read_search,-sys_ptrace', '--'];
    for (const prefix of [[], container]) {
      const { child, said } = await startInChild({ prefix, script: join(clone, 'start.mjs') });
      expect(said).toMatchObject({ adopted: false });
      await killAndWait(child.pid ?? 0);
      const again = await startInChild({ prefix, script: join(clone, 'start.mjs') });
      expect(again.said).toMatchObject({ adopted: true, pid: said.pid });
      await (await start()).stop();
    }
  });

  it('takes over a directory that was copied by root', async () => {
    const first = await start();
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS value');
    await first.stop();
    dataDir = join(scratch, 'copy');
    // Not by fs.cp, which keeps the owner on Node 24.
    expect(spawnSync('cp', ['-R', join(scratch, 'data'), dataDir]).status).toBe(0);
    expect((await stat(join(dataDir, 'pgdata', 'global', 'pg_control'))).uid).toBe(0);
    const second = await start();
    expect(await query(second.url, 'SELECT value FROM kept')).toEqual([{ value: 42 }]);
  });
});

const asNobody = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', '--'];
const nobodyReadsUs = IS_ROOT && spawnSync('setpriv', [...asNobody.slice(1), 'ls', REPOSITORY]).status === 0;

if (!nobodyReadsUs)
  console.warn(
    'skipped: the embedded Postgres as an ordinary user: needs root to become one, and a tree open to others',
  );

describe.skipIf(!nobodyReadsUs)('as an ordinary user (needs root to become one, and a tree open to others)', () => {
  beforeEach(async () => {
    await chmod(scratch, 0o711);
    await mkdir(dataDir, { mode: 0o700 });
  });

  it('runs plainly, and root that adopts or restarts it leaves it to its user', async () => {
    await chown(dataDir, NOBODY, NOBODY);
    const { child, said } = await startInChild({ prefix: asNobody });
    expect(said).toMatchObject({ adopted: false });
    expect(await uidOf(said.pid ?? 0)).toBe(NOBODY);
    await killAndWait(child.pid ?? 0);

    const adopted = await start();
    expect(adopted).toMatchObject({ adopted: true, pid: said.pid });
    await adopted.stop();
    const restarted = await start();
    expect(await uidOf(restarted.pid)).toBe(NOBODY);
    await restarted.stop();
    expect((await startInChild({ prefix: asNobody })).said).toMatchObject({ adopted: false });
    await (await start()).stop();
  });

  it('says whose the directory is when it is not its own', async () => {
    await start();
    const closed = await startInChild({ prefix: asNobody });
    expect(closed.said.error).toMatch(`${dataDir}: it belongs to root and this process runs as nobody`);
    await chmod(dataDir, 0o777);
    const open = await startInChild({ prefix: asNobody });
    // Without an account named postgres it is nobody's own.
    if ((await stat(join(dataDir, 'pgdata'))).uid === NOBODY) expect(open.said.adopted).toBe(true);
    else expect(open.said.error).toMatch(/pgdata: it belongs to postgres and this process runs as nobody/);
    await chmod(scratch, 0o700);
    const hidden = await startInChild({ prefix: asNobody });
    expect(hidden.said.error).toMatch(`${scratch}: it belongs to root`);
  });
});

describe('the support for other tests', () => {
  it('gives each a database of its own on the shared server, and removes it under open connections', async () => {
    const [one, two] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    await query(one.url, 'CREATE TABLE mine ()');
    await expect(query(two.url, 'TABLE mine')).rejects.toMatchObject({ code: '42P01' });
    const open = new pg.Client({ connectionString: one.url });
    open.on('error', () => undefined);
    await open.connect();
    await Promise.all([one.drop(), two.drop()]);
    await one.drop();
    const left = await query(inject('postgresUrl'), 'SELECT datname FROM pg_database');
    expect(left.map((row) => row.datname)).not.toContain(one.name);
    await open.end().catch(() => undefined);
  });

  it('gives a private server that keeps its url over kill and restart', async () => {
    const server = await startPrivatePostgres({ settings: { max_connections: '17' } });
    const { url, pid } = server;
    await server.kill9();
    await expect(query(url, 'SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await server.restart();
    expect(server.pid).not.toBe(pid);
    expect(await query(url, 'SHOW max_connections')).toEqual([{ max_connections: '17' }]);
    await server.restart();
    expect(await query(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await server.stop();
    await server.stop();
    await expect(stat(server.dataDir)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

const BUSY = `SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND state = 'active'`;

async function waitFor(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((done) => setTimeout(done, 5));
}

async function unusedPort(): Promise<number> {
  const server = createServer();
  return new Promise((done) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => done(port));
    });
  });
}
