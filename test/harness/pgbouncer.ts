import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from '../../src/storage/postgres/embedded/port.js';
import type { Stage } from './stage.js';

const BINARY = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find((path) => existsSync(path)) ?? '';
const NOBODY = 65_534;
const STARTS_WITHIN_MS = 10_000;

/** Why there is no pooler here; empty: there is. */
export const pgbouncerMissing = BINARY === '' ? 'no pgbouncer; on Debian: apt-get install pgbouncer' : '';

/** Starts Debian's PgBouncer in transaction mode before a server; returns the URL through it, for any database there. */
export async function startPgbouncer(stage: Stage, serverUrl: string): Promise<string> {
  const directory = await stage.directory('pgbouncer');
  const server = new URL(serverUrl);
  const port = await freePort();
  const files = { config: join(directory, 'pgbouncer.ini'), users: join(directory, 'users.txt') };
  await writeFile(files.users, `"${server.username}" "${decodeURIComponent(server.password)}"\n`, { mode: 0o600 });
  await writeFile(
    files.config,
    `[databases]
* = host=${server.hostname} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${files.users}
auth_user = ${server.username}
auth_query = SELECT usename, passwd FROM pg_shadow WHERE usename = $1
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 10
server_idle_timeout = 5
`,
    { mode: 0o600 },
  );
  // It will not run as root.
  const isRoot = process.getuid?.() === 0;
  if (isRoot) for (const path of [directory, files.config, files.users]) await chown(path, NOBODY, NOBODY);
  const owner = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const child = spawn(BINARY, [files.config], { ...owner, cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-2_000);
  });
  const ended = once(child, 'exit');
  stage.add('pgbouncer', async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await ended;
  });
  const url = new URL(serverUrl);
  url.host = `127.0.0.1:${port}`;
  for (const until = performance.now() + STARTS_WITHIN_MS; !(await answers(url.href)); await pause(50))
    if (child.exitCode !== null || performance.now() > until) throw new Error(`pgbouncer does not answer:\n${said}`);
  return url.href;
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  return client
    .connect()
    .then(() => client.query('SELECT 1'))
    .then(
      () => true,
      () => false,
    )
    .finally(() => client.end().catch(() => undefined));
}
