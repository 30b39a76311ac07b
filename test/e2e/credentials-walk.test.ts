import { cp, mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeTestDirectory } from '../support/global-setup.js';
import { commandsOf, makeBin, ROOT, runScript } from '../support/guides.js';

test('the walk over TLS works as it stands in the guide', { timeout: 120_000 }, async () => {
  const directory = await makeTestDirectory('walk');
  const bin = await makeBin(directory);
  // As `npm install` of the package would lay it.
  await mkdir(join(directory, 'node_modules'));
  await symlink(ROOT, join(directory, 'node_modules/writ'));
  await cp(join(ROOT, 'examples/credentials-over-tls'), directory, { recursive: true });
  const script = await commandsOf('docs/credentials.md', 'A walk over TLS');
  expect(script).toContain('writ certs');
  const env = { PATH: `${bin}:${process.env.PATH}`, WRIT_GRPC_PORT: '0', WRIT_HTTP_PORT: '0' };
  const { code, text } = await runScript(script, directory, env);
  expect(text).toContain('second refusal, by who asks nobody: expired');
  expect(code, text).toBe(0);
  await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});
