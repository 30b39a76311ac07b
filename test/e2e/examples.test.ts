import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Runs a command in a shell; resolves with its exit code and all that it wrote. */
function run(command: string): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve, reject) => {
    const shell = spawn('bash', ['-euo', 'pipefail', '-c', command], { cwd: ROOT });
    let text = '';
    for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk) => (text += String(chunk)));
    shell.on('error', reject).on('close', (code) => resolve({ code, text }));
  });
}

/** The last part of the command at the top of the README: what comes before it, this run has done. */
async function walkOf(example: string): Promise<string> {
  const readme = await readFile(join(ROOT, 'examples', example, 'README.md'), 'utf8');
  const [, command = ''] = /^```sh\n(.*?)\n```/ms.exec(readme) ?? [];
  expect(command).toMatch(/^npm ci && npm run build && node /);
  return command.split(' && ').at(-1) ?? '';
}

test.each([
  [
    'target-service',
    ['the coordinator is back, and knows: operator wrote release/prod-eu', 'the first run wakes up: 409 released'],
  ],
  ['release-pointer-grpc', ['the first run wakes up: FAILED_PRECONDITION', 'the coordinator is down: UNAVAILABLE']],
])(
  'the example %s runs by the command of its README, and sees what it says',
  { timeout: 180_000 },
  async (example, lines) => {
    const { code, text } = await run(await walkOf(example));
    expect(code, text).toBe(0);
    for (const line of [...lines, 'done']) expect(text).toContain(line);
  },
);
