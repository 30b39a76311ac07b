import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** What starting any peer needs. */

const READY_WITHIN_MS = 60_000;

/** Where a program is; null: it is not installed. @param {string} name */
export function find(name) {
  const directories = name.startsWith('/') ? [''] : (process.env.PATH ?? '').split(delimiter);
  return directories.map((directory) => join(directory, name)).find((path) => existsSync(path)) ?? null;
}

/** A port of the loopback interface that nobody listens on. @returns {Promise<number>} */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}

/** Resolves when the question is answered; rejects with its last error when that takes too long. @param {() => Promise<unknown>} ask */
export async function ready(ask) {
  const until = performance.now() + READY_WITHIN_MS;
  for (;;) {
    try {
      await ask();
      return;
    } catch (error) {
      if (performance.now() > until) throw error;
      await pause(100);
    }
  }
}
