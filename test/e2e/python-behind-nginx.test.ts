import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { whyNoNginx } from '../support/nginx.js';

const RUN = fileURLToPath(new URL('../../examples/python-behind-nginx/run.mjs', import.meta.url));
const missing = whyNoNginx();
if (missing !== '') console.warn(`skipped: the example behind nginx: ${missing}`);

test.skipIf(missing !== '')(
  missing === '' ? 'the example shows a refused and an accepted write' : `the example (skipped: ${missing})`,
  { timeout: 120_000 },
  async () => {
    const example = spawn(process.execPath, [RUN]);
    let text = '';
    for (const stream of [example.stdout, example.stderr]) stream.on('data', (chunk) => (text += String(chunk)));
    const code = await new Promise((resolve) => example.on('close', resolve));
    expect(text).toContain('a write without a lease: 401 credential_required\n');
    expect(text).toContain('a write under the lease: 200 written by the run\n');
    expect(text).toContain('a write after the lease: 409 released\n');
    expect(text).toContain('what is there: Hi! (version 2)\n');
    expect(code, text).toBe(0);
  },
);

test('the guide shows lines of the configuration that is tested', () => {
  const linesOf = (text: string): string[] =>
    text
      .split('\n')
      .map((line) =>
        line
          .replace(/\s*#.*$/, '')
          .replace(/\s+/g, ' ')
          .trim(),
      )
      .filter((line) => line !== '');
  const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
  const shown = /^```nginx\n(.*?)^```/ms.exec(read('docs/gateways.md'))?.[1] ?? '';
  const tested = new Set(linesOf(read('examples/python-behind-nginx/nginx.conf')));
  expect(linesOf(shown).length).toBeGreaterThan(30);
  expect(linesOf(shown).filter((line) => !tested.has(line))).toEqual([]);
});
