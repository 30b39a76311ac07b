import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { whyNoNginx } from '../support/nginx.js';

/** Each example of a service behind Writ is rehearsed by the command of its README, and nothing is wrong with it. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const noNginx = whyNoNginx();
if (noNginx !== '') console.warn(`skipped: the rehearsal of the example behind nginx: ${noNginx}`);

async function rehearsalOf(example: string): Promise<{ code: number | null; text: string }> {
  const readme = await readFile(join(ROOT, 'examples', example, 'README.md'), 'utf8');
  const command = `node examples/${example}/rehearse.mjs`;
  expect(readme).toContain(`npm ci && npm run build && ${command}`);
  const child = spawn(process.execPath, command.split(' ').slice(1), { cwd: ROOT });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += String(chunk)));
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, text };
}

test.each([
  ['target-service', 3],
  ['release-pointer-grpc', 1],
])('%s: nothing is wrong with it', { timeout: 300_000 }, async (example, resources) => {
  const { code, text } = await rehearsalOf(example);
  expect(code, text).toBe(0);
  expect(text.match(/^passed {2}\S+ \S+: \d+ passed, \d+ not applicable$/gm), text).toHaveLength(resources);
  expect(text).not.toMatch(/^(failed|undecided|declared gap)/m);
  if (example === 'target-service') expect(text).toMatch(/^passed +policy\/prod-alerts replace +membership \(T8/m);
  // These ask through the suite's proxy, so that the gap between check and commit was looked into.
  expect(text).toMatch(/^passed +\S+ \S+ +write_past_open:verdict/m);
});

test.skipIf(noNginx !== '')(
  'python-behind-nginx: shows what cannot hold without a guard, and nothing else is wrong',
  { timeout: 300_000 },
  async () => {
    const { code, text } = await rehearsalOf('python-behind-nginx');
    expect(code, text).toBe(0);
    expect(text).not.toMatch(/^(failed|undecided)/m);
    // On a machine that is too slow the verdict comes too late for nginx: the gap is declared and not seen then.
    expect(text).toMatch(
      /^(declared gap|passed) +page\/welcome replace +write_past_open:verdict .*\n +(the service keeps no marks|declared as a gap)/m,
    );
    expect(text).toMatch(/^passed {2}page\/welcome replace: (1 declared gap, )?\d+ passed, \d+ not applicable$/m);
    for (const name of ['resend', 'late_write_coordinator_down', 'coordinator_down'])
      expect(text).toMatch(new RegExp(`^passed +page/welcome replace +${name} `, 'm'));
  },
);
