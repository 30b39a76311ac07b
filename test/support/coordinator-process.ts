import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { connectWrit, type WritClient } from '../../src/clients/common/connect.js';
import { makeTestDirectory } from './global-setup.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export type RoleName = 'admin' | 'runner' | 'target' | 'operator' | 'approver' | 'auditor';

/** A coordinator as users run it: an operating-system process of its own, built by `npm run build`. */
export interface CoordinatorProcess {
  readonly dataDir: string;
  readonly pid: number;
  readonly grpc: string;
  readonly http: string;
  /** The one-time link of the embedded mode; else empty. */
  readonly console: string;
  readonly tokens: Readonly<Record<RoleName, string>>;
  /** What it has logged. */
  log(): string;
  client(role: RoleName): WritClient;
  /** Ends it without warning; resolves when it is gone. */
  kill9(): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Resolves when it has ended, by whatever; null: a signal ended it. */
  exitCode(): Promise<number | null>;
  /** Closes the clients, then SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>;
}

export interface CoordinatorProcessOptions {
  readonly dataDir?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Of the principals file that `env` names. Default: the development tokens of the data directory. */
  readonly tokens?: Readonly<Record<RoleName, string>>;
}

export async function startCoordinatorProcess(options: CoordinatorProcessOptions = {}): Promise<CoordinatorProcess> {
  if (!existsSync(MAIN)) throw new Error('dist/main.js is missing: run `npm run build` first (npm test does)');
  const dataDir = options.dataDir ?? (await makeTestDirectory('coordinator'));
  const child = spawn(process.execPath, [MAIN], {
    env: {
      PATH: process.env.PATH ?? '',
      WRIT_GRPC_PORT: '0',
      WRIT_HTTP_PORT: '0',
      WRIT_DATA_DIR: dataDir,
      WRIT_MAX_CLOCK_SKEW: '1s',
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-200_000);
  });
  const ready = await readyLine(child, () => log);
  const tokens =
    options.tokens ?? (JSON.parse(readFileSync(join(dataDir, 'dev-tokens.json'), 'utf8')) as Record<RoleName, string>);
  const clients: WritClient[] = [];
  const exited = once(child, 'exit') as Promise<[number | null]>;
  return {
    dataDir,
    pid: child.pid ?? 0,
    ...ready,
    tokens,
    log: () => log,
    client(role) {
      const client = connectWrit({ endpoint: ready.grpc, token: tokens[role] });
      clients.push(client);
      return client;
    },
    async kill9() {
      child.kill('SIGKILL');
      await exited;
      for (const client of clients) client.close();
    },
    signal: (name) => child.kill(name),
    exitCode: async () => (await exited)[0],
    async stop() {
      for (const client of clients) client.close();
      child.kill('SIGTERM');
      return (await exited)[0];
    },
  };
}

type ReadyLine = Pick<CoordinatorProcess, 'grpc' | 'http' | 'console'>;

async function readyLine(child: ChildProcess, log: () => string): Promise<ReadyLine> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const exit = once(child, 'exit').then(([code]) => {
    throw new Error(`the coordinator ended with ${code} before it was ready:\n${log()}`);
  });
  const line = (await Promise.race([once(lines, 'line'), exit])) as [string];
  exit.catch(() => undefined);
  child.stdout?.resume();
  const { event, grpc, http, console = '' } = JSON.parse(line[0]) as Partial<ReadyLine> & { event: string };
  if (event !== 'ready' || grpc === undefined || http === undefined)
    throw new Error(`unexpected first line: ${line[0]}`);
  return { grpc, http, console };
}
