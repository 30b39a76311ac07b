import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { makeTestDirectory } from '../support/global-setup.js';

const LINES = 600;

/** A process that logs more than a pipe holds, and exits at once with 5. */
async function logging() {
  const file = join(await makeTestDirectory('log-exit'), 'logging.mjs');
  await writeFile(
    file,
    `import { createLogger } from ${JSON.stringify(new URL('../../src/platform/log.js', import.meta.url).href)};
     const log = createLogger('info');
     for (let line = 0; line < ${LINES}; line += 1) log.info({ line, of: 'x'.repeat(1_000) }, 'logged');
     process.exit(5);`,
  );
  return spawn(process.execPath, [...process.execArgv, file], { stdio: ['ignore', 'ignore', 'pipe'] });
}

it('a reader of stderr that stands still does not keep the process from ending (F26)', async () => {
  const child = await logging();
  expect(await once(child, 'exit')).toEqual([5, null]);
  child.stderr.destroy();
});

it('every line is there for one that reads', async () => {
  const child = await logging();
  const [said] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  expect(said.trimEnd().split('\n')).toHaveLength(LINES);
});
