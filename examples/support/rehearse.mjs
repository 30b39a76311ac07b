/** `writ rehearse` for the examples: by the configuration of each, with the addresses of this run in it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const WRIT = fileURLToPath(new URL('../../dist/cli/index.js', import.meta.url));

/** Resolves with how it ended: 0 where nothing was found. `addresses`: what stands in the file, and what it is here. */
export async function rehearse({ config, addresses, url, endpoint, dataDir, directory }) {
  let text = await readFile(config, 'utf8');
  for (const [written, address] of Object.entries(addresses)) text = text.replace(written, address);
  const file = join(directory, 'rehearsal.yaml');
  await writeFile(file, text);
  const child = spawn(process.execPath, [WRIT, 'rehearse', '--target', url, '--config', file], {
    env: { ...process.env, WRIT_ENDPOINT: endpoint, WRIT_DATA_DIR: dataDir },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = await once(child, 'exit');
  return code ?? 1;
}

export async function freeAddress() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return `127.0.0.1:${port}`;
}
