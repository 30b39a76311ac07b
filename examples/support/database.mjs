/**
 * A Postgres to try a service with: the one that the coordinator brings, with its data in the directory that is named.
 * Prints the URL of an empty database and runs until SIGINT or SIGTERM. Needs a built clone.
 */
import { resolve } from 'node:path';
import { startEmbeddedPostgres } from '../../dist/storage/postgres/embedded.js';

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('usage: node database.mjs DIRECTORY');

const database = await startEmbeddedPostgres({ dataDir: resolve(directory) });
const running = setInterval(() => undefined, 2 ** 31 - 1);
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, async () => {
    clearInterval(running);
    await database.stop();
  });
console.log(database.url);
