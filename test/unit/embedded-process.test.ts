import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { platform } from 'node:os';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { inspectProcess } from '../../src/storage/postgres/embedded/process.js';

/** Of resident memory. */
const pagesOf = async (pid: number) => Number((await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')[1]);

describe.runIf(platform() === 'linux')('a process on its way out', () => {
  it('is neither gone nor somebody else', async () => {
    // One thread, as Postgres has, and so much memory that giving it back takes a while: in it there is no command.
    const child = spawn('dd', ['if=/dev/zero', 'of=/dev/null', 'bs=512M', 'count=1000000'], { stdio: 'ignore' });
    const pid = child.pid ?? 0;
    while ((await pagesOf(pid)) < 100_000) await turn();
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    const seen = new Set<string>();
    for (let facts = await inspectProcess(pid); facts !== undefined; facts = await inspectProcess(pid)) {
      seen.add(facts.exiting ? 'exiting' : (facts.command[0] ?? ''));
    }
    await ended;
    expect([...seen].filter((said) => said !== 'dd')).toEqual(['exiting']);
  });
});
