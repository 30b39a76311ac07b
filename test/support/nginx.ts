import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../src/storage/postgres/embedded/port.js';
import { eventually } from './coordinator.js';
import { makeTestDirectory } from './global-setup.js';

const CONF = fileURLToPath(new URL('../../examples/python-behind-nginx/nginx.conf', import.meta.url));

/** Debian puts it where ordinary users have no path to. */
const NGINX = '/usr/sbin/nginx';

/** Why the real nginx cannot be used here; empty: it can. */
export function whyNoNginx(): string {
  try {
    execFileSync(NGINX, ['-v'], { stdio: 'pipe' });
    return '';
  } catch (error) {
    return `${(error as Error).message}; on Debian: apt-get install nginx-light`;
  }
}

/** nginx as a process of its own, by the configuration of the example. */
export interface NginxProcess {
  /** `http://host:port` */
  readonly url: string;
  stop(): Promise<void>;
}

export interface NginxOptions {
  /** `host:port` of the coordinator's HTTP port, and of the service. */
  readonly writ: string;
  readonly service: string;
  /** The proxy's own. */
  readonly token: string;
  /** Runs it as this user of the system; only root can. */
  readonly uid?: number;
}

export async function startNginx({ writ, service, token, uid }: NginxOptions): Promise<NginxProcess> {
  const directory = await makeTestDirectory('nginx');
  const listen = `127.0.0.1:${await freePort()}`;
  const conf = (await readFile(CONF, 'utf8'))
    .replace('127.0.0.1:7411', writ)
    .replace('127.0.0.1:8081', service)
    .replace('127.0.0.1:8080', listen);
  await writeFile(join(directory, 'nginx.conf'), conf);
  await writeFile(join(directory, 'writ-identity.conf'), `proxy_set_header Authorization "Bearer ${token}";\n`);
  if (uid !== undefined) {
    for (const name of ['', 'nginx.conf', 'writ-identity.conf']) await chown(join(directory, name), uid, uid);
  }
  const child = spawn(
    NGINX,
    ['-p', directory, '-c', 'nginx.conf', '-e', 'stderr', '-g', 'daemon off; master_process off;'],
    { stdio: ['ignore', 'ignore', 'pipe'], ...(uid === undefined ? {} : { uid, gid: uid }) },
  );
  let said = '';
  child.stderr.on('data', (chunk) => (said = (said + String(chunk)).slice(-20_000)));
  const ended = once(child, 'exit');
  const url = `http://${listen}`;
  await eventually(
    async () => {
      if (child.exitCode !== null) throw new Error(`nginx ended:\n${said}`);
      return (await fetch(url).catch(() => null)) !== null;
    },
    (reached) => reached,
  );
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      await ended;
      await rm(directory, { recursive: true, force: true });
    },
  };
}
