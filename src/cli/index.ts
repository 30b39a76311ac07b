#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { runCli } from './program.js';

/** The `writ` program: the only place of the CLI that knows this process. */
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

let code: number | undefined;

// `writ … | head` ends when head has seen enough; that is no error. Nor may a closed stderr end `writ exec`, which has a
// lease to give back.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(code ?? 0);
  throw error;
});
process.stderr.on('error', () => undefined);

code = await runCli(process.argv.slice(2), process.env, {
  stdout: process.stdout,
  stderr: process.stderr,
  stdin: () => text(process.stdin),
  version,
});
// Not by process.exitCode alone: a handle that something left open would keep the process, and its lease, alive.
process.stdout.write('', () => process.exit(code));
