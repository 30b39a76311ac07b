import { spawnSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { METHOD_ROUTES } from '../../src/auth/roles.js';
import { startCoordinatorProcess } from '../support/coordinator-process.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { commandsOf, makeBin, runScript } from '../support/guides.js';

const curl = spawnSync('curl', ['--version']).error === undefined;
if (!curl) console.warn('skipped: the walk with curl: no curl in PATH; on Debian: apt-get install curl');

test.skipIf(!curl)('the walk with curl works as it stands in the guide', { timeout: 180_000 }, async () => {
  const directory = await makeTestDirectory('http-walk');
  const coordinator = await startCoordinatorProcess();
  try {
    const script = await commandsOf('docs/http-api.md', 'A walk');
    const { code, text } = await runScript(script, directory, {
      PATH: `${await makeBin(directory)}:${process.env.PATH}`,
      WRIT_HTTP: `http://${coordinator.http}`,
      WRIT_DATA_DIR: coordinator.dataDir,
    });
    expect(code, text).toBe(0);
    const lines = text.split('\n');
    for (const told of ['MAP_VERSION_CONFLICT', 'REFUSAL_KIND_FROZEN', 'RUN_STATE_STOPPED', 'THAW_OUTCOME_THAWED'])
      expect(lines, text).toContain(told);
    expect(text).toMatch(/^verified: \d+ events/m);
    // Of a walk through what an admin and an operator do, a part is no walk.
    const walked = (route: string): boolean => {
      const [method = '', path = ''] = route.replace('/v1', '').split(' ');
      const pattern = path.replaceAll(/\{\w+\}/g, '[^/ ]+').replaceAll('/', '\\/');
      return new RegExp(`\\bas \\w+ ${method} ['"]?${pattern}['"?\\s]`).test(script);
    };
    const routes = METHOD_ROUTES.filter((route) =>
      / \/v1\/(?:conflict-map|freezes|in-doubt|waiters|events)\b/.test(route),
    );
    const left = [
      'GET /v1/conflict-map/matrix',
      'GET /v1/conflict-map/schema',
      'GET /v1/conflict-map/unmatched',
      'GET /v1/freezes',
      // What it gives up is gone; the guide to operations says when.
      'POST /v1/events/cut',
    ];
    expect(routes.filter((route) => !walked(route))).toEqual(left);
  } finally {
    await coordinator.stop();
    await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
});
