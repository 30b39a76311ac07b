import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Coordinator, createCoordinator, startCoordinator } from '../../src/coordinator.js';
import { serve } from '../../src/main.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { migrate } from '../../src/storage/postgres/migrate.js';
import { ANYBODY_BLOCKED, createTestDatabase, killAndWait, PREPARED } from '../support/postgres.js';

let dataDir: string;
const running: Coordinator[] = [];

function config(env: Record<string, string> = {}) {
  const own = { WRIT_GRPC_PORT: '0', WRIT_HTTP_PORT: '0', WRIT_DATA_DIR: dataDir, WRIT_MAX_CLOCK_SKEW: '0s' };
  return readConfig({ ...own, ...env });
}

async function start(): Promise<Coordinator> {
  const coordinator = await startCoordinator(config(), createLogger('silent'));
  running.push(coordinator);
  return coordinator;
}

async function readiness(coordinator: Coordinator): Promise<number> {
  return (await fetch(`http://${coordinator.http}/readyz`)).status;
}

/** Pid and port of the embedded Postgres. */
async function postmaster(): Promise<{ pid: number; port: number }> {
  const lines = (await readFile(join(dataDir, 'pgdata', 'postmaster.pid'), 'utf8')).split('\n');
  return { pid: Number(lines[0]), port: Number(lines[3]) };
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const deadline = performance.now() + 20_000; !(await holds().catch(() => false)); await pause(50)) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
  }
}

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'writ-main-'));
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((coordinator) => coordinator.stop()));
  await rm(dataDir, { recursive: true, force: true });
});

describe('the coordinator', () => {
  it('starts its Postgres again on the same port when that dies', async () => {
    const coordinator = await start();
    const before = await postmaster();
    await killAndWait(before.pid);
    await until('another postmaster', async () => (await postmaster()).pid !== before.pid);
    await until('ready again', async () => (await readiness(coordinator)) === 200);
    expect((await postmaster()).port).toBe(before.port);
    expect(await coordinator.stop()).toEqual([]);
    await expect(postmaster()).rejects.toThrow('ENOENT');
  });

  it('shares its Postgres with another one on the same data directory; the last to stop stops it', async () => {
    const [first, second] = [await start(), await start()];
    expect(await first.stop()).toEqual([]);
    expect((await postmaster()).pid).toBeGreaterThan(0);
    expect(await readiness(second)).toBe(200);
    expect(await second.stop()).toEqual([]);
    await expect(postmaster()).rejects.toThrow('ENOENT');
  });

  it('touches no database when its port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const port = String((other.address() as AddressInfo).port);
    const coordinator = createCoordinator(config({ WRIT_GRPC_PORT: port }), createLogger('silent'));
    await expect(coordinator.start()).rejects.toMatchObject({ exitCode: 3 });
    await expect(access(join(dataDir, 'pgdata'))).rejects.toThrow('ENOENT');
    other.close();
  });

  it('names both ports when both are taken', async () => {
    const others = [createServer().listen(0, '127.0.0.1'), createServer().listen(0, '127.0.0.1')] as const;
    await Promise.all(others.map((other) => once(other, 'listening')));
    const [grpc, http] = others.map((other) => String((other.address() as AddressInfo).port));
    const env = { WRIT_GRPC_PORT: grpc ?? '', WRIT_HTTP_PORT: http ?? '' };
    const error = await startCoordinator(config(env), createLogger('silent')).catch((reason: Error) => reason);
    expect(error).toMatchObject({ exitCode: 3 });
    for (const part of [`:${grpc} for gRPC`, `:${http} for HTTP`, 'WRIT_GRPC_PORT', 'WRIT_HTTP_PORT'])
      expect((error as Error).message).toContain(part);
    for (const other of others) other.close();
  });

  it('an address that this machine does not have is a wrong setting', async () => {
    const starting = startCoordinator(
      config({ WRIT_HOST: '192.0.2.1', WRIT_ALLOW_INSECURE: 'beyond-loopback' }),
      createLogger('silent'),
    );
    await expect(starting).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining('WRIT_HOST') });
  });

  it('a data directory that cannot be made is a wrong setting', async () => {
    const database = await createTestDatabase();
    try {
      await migrate(database.url, { log: () => undefined });
      const file = join(dataDir, 'file');
      await writeFile(file, '{"principals":[]}');
      const env = { WRIT_DATABASE_URL: database.url, WRIT_TOKENS_FILE: file, WRIT_DATA_DIR: file };
      const starting = startCoordinator(config(env), createLogger('silent'));
      await expect(starting).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining('WRIT_DATA_DIR') });
    } finally {
      await database.drop();
    }
  });

  it('can be stopped at any moment of its start', async () => {
    for (const delay of [0, 30, 200]) {
      const coordinator = createCoordinator(config(), createLogger('silent'));
      // A start that was faster than the delay has succeeded; one that was not says that it was asked to stop.
      const starting = coordinator.start().catch((error: unknown) => error);
      await pause(delay);
      expect(await coordinator.stop()).toEqual([]);
      expect([undefined, 0]).toContain(((await starting) as { exitCode?: number } | undefined)?.exitCode);
    }
    await expect(postmaster()).rejects.toThrow('ENOENT');
  });

  it('says that it is ready only when it lets callers in, whatever has loaded before', async () => {
    const database = await createTestDatabase();
    await migrate(database.url, { log: () => undefined });
    const tokens = join(dataDir, 'tokens.json');
    const token = 'a-token-of-an-operator-for-this-test';
    const token_sha256 = createHash('sha256').update(token).digest('hex');
    await writeFile(tokens, JSON.stringify({ principals: [{ name: 'op', roles: ['operator'], token_sha256 }] }));
    const prepared = PREPARED ? 'on' : 'off';
    const env = { WRIT_DATABASE_URL: database.url, WRIT_TOKENS_FILE: tokens, WRIT_DATABASE_PREPARED: prepared };
    const coordinator = createCoordinator(config(env), createLogger('silent'));
    running.push(coordinator);
    // The namespaces load, and then the start waits for the signing keys.
    const [keys, looking] = [new pg.Client(database.url), new pg.Client(database.url)];
    await Promise.all([keys.connect(), looking.connect()]);
    await keys.query('BEGIN; LOCK TABLE writ.signing_key IN ACCESS EXCLUSIVE MODE');
    const starting = coordinator.start();
    await until('the start waits for the keys', async () => ((await looking.query(ANYBODY_BLOCKED)).rowCount ?? 0) > 0);
    const call = async () =>
      (await fetch(`http://${coordinator.http}/v1/runs`, { headers: { authorization: `Bearer ${token}` } })).status;
    expect(await call()).toBe(503);
    expect(await readiness(coordinator)).toBe(503);
    await keys.query('ROLLBACK');
    await Promise.all([keys.end(), looking.end()]);
    await starting;
    expect([await readiness(coordinator), await call()]).toEqual([200, 200]);
    await coordinator.stop();
    await database.drop();
  });

  it('reads its tokens file before it looks for a database', async () => {
    const env = {
      WRIT_DATABASE_URL: 'postgres://writ:hunter2@127.0.0.1:1/writ',
      WRIT_TOKENS_FILE: join(dataDir, 'none.json'),
    };
    await expect(startCoordinator(config(env), createLogger('silent'))).rejects.toThrow(/none\.json: cannot be read/);
  });

  it('ends with 2 for a routes file that cannot be used, and names file and field', async () => {
    const file = join(dataDir, 'routes.yaml');
    await writeFile(file, 'version: 1\nroutes: [{ method: PUT, path: pages }]');
    await expect(startCoordinator(config({ WRIT_ROUTES_FILE: file }), createLogger('silent'))).rejects.toThrow(
      `${file}: routes[0].path: `,
    );
    const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    try {
      const env = { WRIT_GRPC_PORT: '0', WRIT_HTTP_PORT: '0', WRIT_DATA_DIR: dataDir, WRIT_LOG_LEVEL: 'silent' };
      expect(await serve({ ...env, WRIT_ROUTES_FILE: file })).toBe(2);
      expect(said.mock.calls.map(String).join('')).toContain('routes[0].path');
    } finally {
      said.mockRestore();
    }
  });
});
