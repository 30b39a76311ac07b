#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { reportUnwritten, runCli } from './program.js';

/** The `writ` program: the only place of the CLI that knows this process. */
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

const args = process.argv.slice(2);
let code: number | undefined;

// `writ … | head` ends when head has seen enough; that is no error. A result that is lost on a full disk is one, though
// the call went well. Nor may a closed stderr end `writ exec`, which has a lease to give back.
function endUnwritten(error: NodeJS.ErrnoException): never {
  process.exit(error.code === 'EPIPE' ? (code ?? 0) : reportUnwritten(error, args, process));
}
process.stdout.on('error', endUnwritten);
process.stderr.on('error', () => undefined);

code = await runCli(args, process.env, {
  stdout: process.stdout,
  stderr: process.stderr,
  stdin: () => text(process.stdin),
  version,
});
// Not by process.exitCode alone: a handle that something left open would keep the process, and its lease, alive.
process.stdout.write('', (error) => {
  if (!error) process.exit(code);
  // The event has the first error of the stream, this may have a later one.
  setImmediate(endUnwritten, error);
});
