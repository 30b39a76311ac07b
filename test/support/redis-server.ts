import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from '../../src/storage/postgres/embedded/port.js';
import { makeTestDirectory } from './global-setup.js';

/** Why tests with the real Redis are skipped; empty: they are not. */
export const redisMissing = (process.env.PATH ?? '')
  .split(delimiter)
  .some((path) => existsSync(join(path, 'redis-server')))
  ? ''
  : 'no redis-server in PATH; on Debian: apt-get install redis-server';

if (redisMissing !== '') console.warn(`skipped: the real Redis: ${redisMissing}`);

/** A Redis of one test's own. */
export interface TestRedis {
  readonly port: number;
  readonly url: string;
  /** SIGSTOP and SIGCONT: it is there, and does not answer. */
  pause(): void;
  resume(): void;
  /** A connection of its own, closed at the end. */
  connect(): Redis;
  /** SIGKILLs it and starts it again on what is on disk; with `empty` on nothing. */
  restart(options?: { readonly empty?: boolean }): Promise<void>;
  stop(): Promise<void>;
}

/** Starts Debian's redis-server, by default as one that keeps marks must be: everything on disk before the answer. */
export async function startRedis(settings: Readonly<Record<string, string>> = {}): Promise<TestRedis> {
  const dir = await makeTestDirectory('redis');
  const port = await freePort();
  const all = { appendonly: 'yes', appendfsync: 'always', save: '', ...settings };
  let server = await start(dir, port, all);
  const clients: Redis[] = [];
  const connect = (): Redis => {
    const client = new Redis({ host: '127.0.0.1', port, retryStrategy: (times) => Math.min(times * 20, 200) });
    client.on('error', () => undefined);
    clients.push(client);
    return client;
  };
  const signal = (name: NodeJS.Signals) => process.kill(serverPidOf(dir), name);
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    connect,
    async restart({ empty = false } = {}) {
      await end(server);
      if (empty) await rm(join(dir, 'appendonlydir'), { recursive: true, force: true });
      server = await start(dir, port, all);
    },
    async stop() {
      for (const client of clients) client.disconnect();
      await end(server);
      await rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

const PID_FILE = 'redis.pid';

function serverPidOf(dir: string): number {
  return Number(readFileSync(join(dir, PID_FILE), 'utf8'));
}

/** A Redis that does not outlive this process, however that ends. */
const UNTIL_STDIN_ENDS = 'exec 3<&0; redis-server "$@" & redis=$!; (cat <&3; kill -9 $redis) & wait $redis';

/** As SIGKILL does, and returns when it is gone. */
async function end(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const gone = once(server, 'exit');
  server.stdin?.end();
  await gone;
}

async function start(dir: string, port: number, settings: Readonly<Record<string, string>>): Promise<ChildProcess> {
  const pidfile = join(dir, PID_FILE);
  const args = Object.entries({ ...settings, bind: '127.0.0.1', port: String(port), dir, pidfile }).flatMap(
    ([name, value]) => [`--${name}`, value],
  );
  const server = spawn('/bin/sh', ['-c', UNTIL_STDIN_ENDS, 'sh', ...args], { stdio: ['pipe', 'ignore', 'ignore'] });
  const probe = new Redis({ host: '127.0.0.1', port, lazyConnect: true, retryStrategy: () => null });
  probe.on('error', () => undefined);
  for (;;) {
    if (server.exitCode !== null) throw new Error('redis-server cannot be started');
    const answer = await probe.connect().then(
      () => probe.ping(),
      () => '',
    );
    if (answer === 'PONG') break;
    await pause(10);
  }
  probe.disconnect();
  return server;
}
