import { spawnSync } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import { JobThread } from '../../src/platform/job-thread.js';

interface Job {
  readonly kind: 'echo' | 'spin' | 'hoard' | 'fail' | 'leave';
  readonly value?: number;
}

const MODULE = new URL('../support/job-thread.mjs', import.meta.url);

let thread: JobThread<Job, { value: number; threadId: number }>;

function start(timeLimitMs = 30_000): void {
  thread = new JobThread({ module: MODULE, timeLimitMs, memoryLimitMb: 32 });
}

const echo = (value: number) => thread.run({ kind: 'echo', value });

afterEach(() => thread.close());

describe('a thread for jobs', () => {
  it('does one after another, all of them in one thread', async () => {
    start();
    const answers = await Promise.all([1, 2, 3].map(echo));
    expect(answers.map(({ value }) => value)).toEqual([1, 2, 3]);
    expect(new Set(answers.map(({ threadId }) => threadId)).size).toBe(1);
    expect(thread.size).toBe(0);
  });

  it('gives up a job that takes too long, while the event loop goes on, and does the next in a new thread', async () => {
    start(2_000);
    const before = await echo(1);
    const spinning = thread.run({ kind: 'spin' });
    const next = echo(2);
    expect(thread.size).toBe(2);
    let turns = 0;
    const counting = setInterval(() => {
      turns += 1;
    }, 1);
    await expect(spinning).rejects.toMatchObject({ name: 'JobUndone', why: 'time' });
    clearInterval(counting);
    expect(turns).toBeGreaterThan(10);
    expect((await next).threadId).not.toBe(before.threadId);
  });

  it('does not count the start of the thread, which a busy machine makes long', async () => {
    const module = new URL('../support/slow-job-thread.mjs', import.meta.url);
    thread = new JobThread({ module, timeLimitMs: 2_000, memoryLimitMb: 32 });
    expect((await echo(1)).value).toBe(1);
  });

  it('gives up a job that takes too much memory, and the process lives on', async () => {
    start();
    await expect(thread.run({ kind: 'hoard', value: 1 })).rejects.toMatchObject({ name: 'JobUndone', why: 'memory' });
    expect((await echo(2)).value).toBe(2);
  });

  it('passes on what a job throws, and goes on', async () => {
    start();
    await expect(thread.run({ kind: 'fail' })).rejects.toThrow('not so');
    expect((await echo(2)).value).toBe(2);
  });

  it('is replaced when it ends by itself', async () => {
    start();
    await expect(thread.run({ kind: 'leave' })).rejects.toThrow('ended by itself (3)');
    expect((await echo(2)).value).toBe(2);
  });

  it('closes with a job in flight and others waiting: all are given up, and no more are taken', async () => {
    start();
    const jobs = [thread.run({ kind: 'spin' }), echo(1)];
    const closing = thread.close();
    for (const job of [...jobs, echo(2)]) await expect(job).rejects.toMatchObject({ why: 'closed' });
    await closing;
    expect(thread.size).toBe(0);
  });

  it('keeps no process alive', () => {
    start();
    const script = `
      import { Worker } from 'node:worker_threads';
      new Worker(new URL(${JSON.stringify(MODULE.href)})).unref();
    `;
    expect(spawnSync(process.execPath, ['--input-type=module', '-e', script]).status).toBe(0);
  });
});
