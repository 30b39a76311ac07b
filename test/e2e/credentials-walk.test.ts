import { spawn } from 'node:child_process';
import { chmod, cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { makeTestDirectory } from '../support/global-setup.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The commands of a section of a guide, as they stand there. */
async function commandsOf(guide: string, heading: string): Promise<string> {
  const text = await readFile(join(ROOT, guide), 'utf8');
  const section = text.slice(text.indexOf(`\n## ${heading}\n`)).split(/\n## /)[1] ?? '';
  return [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(([, commands]) => commands).join('\n');
}

/** Runs a script in a shell; resolves with its exit code and all that it wrote. */
function run(script: string, cwd: string, env: Record<string, string>): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve, reject) => {
    const shell = spawn('bash', ['-euo', 'pipefail', '-c', script], { cwd, env: { ...process.env, ...env } });
    let text = '';
    for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk) => (text += String(chunk)));
    shell.on('error', reject).on('close', (code) => resolve({ code, text }));
  });
}

test('the walk over TLS works as it stands in the guide', { timeout: 120_000 }, async () => {
  const directory = await makeTestDirectory('walk');
  const bin = join(directory, 'bin');
  await mkdir(bin);
  await writeFile(join(bin, 'writ'), `#!/bin/sh\nexec "${process.execPath}" "${ROOT}/dist/cli/index.js" "$@"\n`);
  await chmod(join(bin, 'writ'), 0o755);
  // As `npm install` of the package would lay it.
  await mkdir(join(directory, 'node_modules'));
  await symlink(ROOT, join(directory, 'node_modules/writ'));
  await cp(join(ROOT, 'examples/credentials-over-tls'), directory, { recursive: true });
  const script = await commandsOf('docs/credentials.md', 'A walk over TLS');
  expect(script).toContain('writ certs');
  const env = { PATH: `${bin}:${process.env.PATH}`, WRIT_GRPC_PORT: '0', WRIT_HTTP_PORT: '0' };
  const { code, text } = await run(script, directory, env);
  expect(text).toContain('second refusal, by who asks nobody: expired');
  expect(code, text).toBe(0);
  await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});
