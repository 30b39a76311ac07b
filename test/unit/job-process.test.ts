import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { JobProcess } from '../../src/platform/job-process.js';
import { isProcessAlive } from '../../src/storage/postgres/embedded/process.js';
import { makeTestDirectory } from '../support/global-setup.js';

interface Job {
  readonly kind: 'echo' | 'spin' | 'hoard' | 'fail' | 'leave' | 'settings';
  readonly value?: number;
}

const MODULE = new URL('../support/job-process.mjs', import.meta.url);

let jobs: JobProcess<Job, { value: number; pid: number }>;

function start(timeLimitMs = 30_000): void {
  jobs = new JobProcess({ module: MODULE, timeLimitMs, memoryLimitMb: 32 });
}

const echo = (value: number) => jobs.run({ kind: 'echo', value });

afterEach(() => jobs?.close());

describe('a process for jobs', () => {
  it('does one after another, all of them in one process', async () => {
    start();
    const answers = await Promise.all([1, 2, 3].map(echo));
    expect(answers.map(({ value }) => value)).toEqual([1, 2, 3]);
    expect(new Set(answers.map(({ pid }) => pid)).size).toBe(1);
    expect(jobs.size).toBe(0);
  });

  it('gives up a job that takes too long, while the event loop goes on, and does the next in a new process', async () => {
    start(2_000);
    const before = await echo(1);
    const spinning = jobs.run({ kind: 'spin' });
    const next = echo(2);
    expect(jobs.size).toBe(2);
    let turns = 0;
    const counting = setInterval(() => {
      turns += 1;
    }, 1);
    await expect(spinning).rejects.toMatchObject({ name: 'JobUndone', why: 'time' });
    clearInterval(counting);
    expect(turns).toBeGreaterThan(10);
    expect((await next).pid).not.toBe(before.pid);
  });

  it('does not count the start of the process, which a busy machine makes long', async () => {
    const module = new URL('../support/slow-job-process.mjs', import.meta.url);
    jobs = new JobProcess({ module, timeLimitMs: 2_000, memoryLimitMb: 32 });
    expect((await echo(1)).value).toBe(1);
  });

  it('gives up a job that takes too much memory, and this process lives on', async () => {
    start();
    await expect(jobs.run({ kind: 'hoard', value: 1 })).rejects.toMatchObject({ name: 'JobUndone', why: 'memory' });
    expect((await echo(2)).value).toBe(2);
  });

  it('passes on what a job throws, and goes on', async () => {
    start();
    await expect(jobs.run({ kind: 'fail' })).rejects.toThrow('not so');
    expect((await echo(2)).value).toBe(2);
  });

  it('is replaced when it ends by itself', async () => {
    start();
    await expect(jobs.run({ kind: 'leave' })).rejects.toThrow('ended by itself (3)');
    expect((await echo(2)).value).toBe(2);
  });

  it('closes with a job in flight and others waiting: all are given up, and no more are taken', async () => {
    start();
    const given = [jobs.run({ kind: 'spin' }), echo(1)];
    const closing = jobs.close();
    for (const job of [...given, echo(2)]) await expect(job).rejects.toMatchObject({ why: 'closed' });
    await closing;
    expect(jobs.size).toBe(0);
  });

  it('does not stay long without a job', async () => {
    jobs = new JobProcess({ module: MODULE, timeLimitMs: 30_000, memoryLimitMb: 32, idleMs: 1 });
    const { pid } = await echo(1);
    await expect.poll(() => isProcessAlive(pid)).toBe(false);
    expect((await echo(2)).value).toBe(2);
  });

  it('is told none of the settings, some of which are secrets', async () => {
    start();
    expect((await jobs.run({ kind: 'settings' })).value).toBe(0);
  });

  it('keeps no process alive', async () => {
    const { child, pid } = await parentOf('echo');
    await once(child, 'exit');
    expect(child.exitCode).toBe(0);
    await expect.poll(() => isProcessAlive(pid)).toBe(false);
  });

  it('ends with a parent that is killed, also in the middle of a job', async () => {
    const { child, pid } = await parentOf('spin');
    child.kill('SIGKILL');
    await expect.poll(() => isProcessAlive(pid)).toBe(false);
  });
});

/** A process that has jobs done by one of its own, and has begun such a job. */
async function parentOf(kind: Job['kind']): Promise<{ child: ChildProcess; pid: number }> {
  const script = `
    import { JobProcess } from ${JSON.stringify(new URL('../../src/platform/job-process.js', import.meta.url).href)};
    const jobs = new JobProcess({ module: new URL(${JSON.stringify(MODULE.href)}), timeLimitMs: 60_000, memoryLimitMb: 32 });
    console.log((await jobs.run({ kind: 'echo' })).pid);
    await jobs.run({ kind: ${JSON.stringify(kind)} });
  `;
  const file = join(await makeTestDirectory('job-process'), 'parent.mjs');
  await writeFile(file, script);
  const child = spawn(process.execPath, [...process.execArgv, file]);
  const [said] = await once(child.stdout, 'data');
  return { child, pid: Number(said) };
}
