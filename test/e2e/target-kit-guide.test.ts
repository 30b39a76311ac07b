import { spawn } from 'node:child_process';
import { chmod, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseRouteTable } from '../../src/route-table/index.js';
import { freePort } from '../../src/storage/postgres/embedded/port.js';
import { makeTestDirectory } from '../support/global-setup.js';

/** The guide's first service, put behind Writ as the guide says it, file by file and command by command. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

let guide: string;
let directory: string;

beforeEach(async () => {
  guide = await readFile(join(ROOT, 'docs/target-kit.md'), 'utf8');
  directory = await makeTestDirectory('guide');
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});

function run(script: string, env: Record<string, string>): Promise<{ code: number | null; out: string; text: string }> {
  return new Promise((resolve, reject) => {
    const shell = spawn('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: directory,
      env: { ...process.env, ...env },
    });
    let out = '';
    let text = '';
    shell.stdout.on('data', (chunk) => {
      out += String(chunk);
      text += String(chunk);
    });
    shell.stderr.on('data', (chunk) => (text += String(chunk)));
    shell.on('error', reject).on('close', (code) => resolve({ code, out, text }));
  });
}

test('thirty lines, and then behind Writ, as it stands in the guide', { timeout: 180_000 }, async () => {
  const proxy = `127.0.0.1:${await freePort()}`;
  const steps = guide
    .slice(guide.indexOf('\n## Thirty lines'), guide.indexOf('\n## The route table\n'))
    .replaceAll('127.0.0.1:17410', proxy);
  for (const [, name = '', text = ''] of steps.matchAll(/<!-- file: (\S+) -->\n\n```\w+\n(.*?)^```/gms))
    await writeFile(join(directory, name), text);
  expect((await readFile(join(directory, 'before.mjs'), 'utf8')).trimEnd().split('\n').length).toBeLessThanOrEqual(30);
  await mkdir(join(directory, 'bin'));
  await writeFile(
    join(directory, 'bin/writ'),
    `#!/bin/sh\nexec "${process.execPath}" "${ROOT}/dist/cli/index.js" "$@"\n`,
  );
  await chmod(join(directory, 'bin/writ'), 0o755);
  // As `npm install` would lay the packages.
  await mkdir(join(directory, 'node_modules/@hono'), { recursive: true });
  await symlink(ROOT, join(directory, 'node_modules/writ'));
  for (const name of ['hono', 'pg', '@hono/node-server'])
    await symlink(join(ROOT, 'node_modules', name), join(directory, 'node_modules', name));
  const blocks = [...steps.matchAll(/^```sh\n(.*?)^```/gms)].map(([, text = '']) => text);
  const commands = blocks.join('').replaceAll('/path/to/writ', ROOT);
  const { code, out, text } = await run(commands, {
    PATH: `${directory}/bin:${process.env.PATH}`,
    PORT: '0',
    WRIT_GRPC_PORT: '0',
    WRIT_HTTP_PORT: '0',
  });
  expect(code, text).toBe(0);
  const answers = out.split('\n').filter((line) => line.startsWith('{'));
  expect(
    answers.map((line) => JSON.parse(line) as Record<string, unknown>),
    text,
  ).toMatchObject([
    { status: 401, code: 'credential_required', resource: 'note/welcome' },
    { version: '2' },
    { status: 412, code: 'version_conflict', current_version: '2', resolver: 'notes-owner' },
    { status: 403, code: 'not_covered', resource: 'note/other' },
    { status: 409, code: 'released' },
  ]);
  for (const name of ['conflict', 'late_write', 'write_past_open:verdict', 'coordinator_down'])
    expect(out).toMatch(new RegExp(`^passed +note/welcome replace +${name} `, 'm'));
});

test('the route table of the reference is one', () => {
  const section = guide.slice(guide.indexOf('\n## The route table\n'));
  const [, yaml = ''] = /^```yaml\n(.*?)^```/ms.exec(section) ?? [];
  expect(parseRouteTable(parse(yaml)).routes.map(({ kind }) => kind)).toEqual([
    'writes',
    'reads',
    'unprotected',
    'writes',
  ]);
});
