import { spawn } from 'node:child_process';
import { chmod, cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { makeTestDirectory } from '../support/global-setup.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

test('the agent runner of the examples: three agents change one document at once, and none undoes another', {
  timeout: 180_000,
}, async () => {
  const directory = await makeTestDirectory('agent-runner');
  // As `npm install` lays the package and its command.
  const bin = join(directory, 'node_modules/.bin');
  await mkdir(bin, { recursive: true });
  await symlink(ROOT, join(directory, 'node_modules/writ'));
  await writeFile(join(bin, 'writ'), `#!/bin/sh\nexec "${process.execPath}" "${ROOT}/dist/cli/index.js" "$@"\n`);
  await chmod(join(bin, 'writ'), 0o755);
  await cp(join(ROOT, 'examples/agent-runner'), directory, { recursive: true });
  const { code, text } = await run(directory);
  expect(code, text).toBe(0);
  for (const destination of ['pager', 'mail', 'chat'])
    expect(text).toMatch(new RegExp(`^${destination}: written after \\d+ attempt\\(s\\)$`, 'm'));
  expect(text).toContain('the policy now notifies: chat, mail, ops@example.com, pager');
  await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});

function run(directory: string): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', ['start', '--silent'], { cwd: directory, env: process.env });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += String(chunk)));
    child.on('error', reject).on('close', (code) => resolve({ code, text }));
  });
}
