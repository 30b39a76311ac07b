import { rm } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { startCoordinatorProcess } from '../support/coordinator-process.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { commandBlocksOf, makeBin, ROOT, runScript } from '../support/guides.js';

test('the first steps work as they stand in the README', { timeout: 300_000 }, async () => {
  const [start, walk = ''] = await commandBlocksOf('README.md', 'First steps');
  expect(start).toBe('npm start\n');
  const directory = await makeTestDirectory('readme-walk');
  const coordinator = await startCoordinatorProcess();
  try {
    const env = {
      PATH: `${await makeBin(directory)}:${process.env.PATH}`,
      WRIT_ENDPOINT: coordinator.grpc,
      WRIT_DATA_DIR: coordinator.dataDir,
    };
    const commands = walk.replaceAll('npx writ', 'writ');
    const firstCheck = commands.indexOf('writ check');
    const taken = await runScript(`${commands.slice(0, firstCheck)}\necho "run=$RUN"`, ROOT, env);
    expect(taken.code, taken.text).toBe(0);
    expect(taken.text).toMatch(/^token \d+$/m);
    const told = (pattern: RegExp): string => pattern.exec(taken.text)?.[1] ?? '';
    const [lease, token, run] = [/^lease +(\w+)/m, /^deployment\/staging .* (\d{16}) /m, /^run=(\w+)$/m].map(told);
    const rest = commands
      .slice(firstCheck)
      .replaceAll('LEASE', lease ?? '')
      .replaceAll('TOKEN', token ?? '');
    const { code, text } = await runScript(rest, ROOT, { ...env, RUN: run ?? '' });
    expect(text).toContain('allowed (ok)');
    expect(text).toContain('denied (released)');
    expect(code, text).toBe(4);
  } finally {
    await coordinator.stop();
    await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
});
