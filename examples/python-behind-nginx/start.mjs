/** What the walk and the rehearsal stand on: a coordinator, the Python service and nginx, on free ports; gone at the end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { connectWrit } from 'writ/runner';
import { freeAddress } from '../support/rehearse.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

/** `asked`: the address at which nginx asks, where that is not the coordinator's own. */
export async function startAll({ asked } = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'writ-example-'));
  const dataDir = join(directory, 'writ');
  const running = [];
  const close = async () => {
    for (const { child, ended } of running) {
      child.kill('SIGTERM');
      await ended;
    }
    await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };

  try {
    const env = {
      WRIT_GRPC_PORT: '0',
      WRIT_HTTP_PORT: '0',
      WRIT_DATA_DIR: dataDir,
      WRIT_ROUTES_FILE: here('routes.yaml'),
      WRIT_LOG_LEVEL: 'error',
    };
    const { grpc, http } = JSON.parse(await start(process.execPath, [here('../../dist/main.js')], { env }));
    const tokens = JSON.parse(await readFile(join(dataDir, 'dev-tokens.json'), 'utf8'));
    const admin = connectWrit({ endpoint: grpc, token: tokens.admin });
    const document = await readFile(here('map.yaml'), 'utf8');
    await admin.conflictMap.putConflictMap({ document, expectedVersion: 0n, reason: 'the example' });
    admin.close();

    const service = `127.0.0.1:${await start('python3', [here('service.py'), '0'])}`;
    const proxy = await freeAddress();
    await startNginx({ '127.0.0.1:7411': asked ?? http, '127.0.0.1:8081': service, '127.0.0.1:8080': proxy }, tokens);
    await reached(`http://${proxy}/nothing`);
    return { grpc, http, dataDir, directory, tokens, url: `http://${proxy}`, close };
  } catch (error) {
    await close();
    throw error;
  }

  /** Starts a program; resolves with the first line that it prints. */
  async function start(command, args, { env = {}, ready = true } = {}) {
    // Debian has nginx where ordinary users have no path to.
    const PATH = `${process.env.PATH}:/usr/sbin`;
    const child = spawn(command, args, { env: { ...process.env, PATH, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
    const failed = once(child, 'error').then(([error]) => Promise.reject(error));
    failed.catch(() => undefined);
    await Promise.race([once(child, 'spawn'), failed]);
    const ended = once(child, 'exit');
    running.unshift({ child, ended });
    if (!ready) return '';
    const first = once(createInterface({ input: child.stdout }), 'line').then(([line]) => line);
    const early = ended.then(() => Promise.reject(new Error(`${command} ended before it was ready`)));
    early.catch(() => undefined);
    return Promise.race([first, early]);
  }

  /** nginx by its configuration here, with these addresses in place of those that stand there. */
  async function startNginx(addresses, { target }) {
    let conf = await readFile(here('nginx.conf'), 'utf8');
    for (const [written, address] of Object.entries(addresses)) conf = conf.replace(written, address);
    await writeFile(join(directory, 'nginx.conf'), conf);
    const identity = `proxy_set_header Authorization "Bearer ${target}";\n`;
    await writeFile(join(directory, 'writ-identity.conf'), identity, { mode: 0o600 });
    const args = ['-p', directory, '-c', 'nginx.conf', '-e', 'stderr', '-g', 'daemon off; master_process off;'];
    await start('nginx', args, { ready: false });
  }
}

/** Asks until somebody listens. */
async function reached(url) {
  for (let tries = 0; tries < 100; tries += 1) {
    const answer = await fetch(url).catch(() => null);
    if (answer !== null) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${url} is not reached`);
}
