import { Worker } from 'node:worker_threads';
import { type JobAnswer, PROCESS_READY } from './job-process.js';

/** A job holds the event loop, so that only another thread notices that nobody waits for its result any more. */
const WATCH_PARENT = `
  const { ppid } = process;
  setInterval(() => { if (process.ppid !== ppid) process.kill(process.pid, 'SIGKILL'); }, 1_000);
`;

/** The other side of a JobProcess: does the jobs of the parent process, one answer for each, in order, until it is gone. */
export function serveJobs<Job, Result>(doJob: (job: Job) => Result): void {
  const say = (what: JobAnswer<Result> | typeof PROCESS_READY): void => {
    // A parent that is gone is told nothing.
    process.send?.(what, undefined, undefined, () => undefined);
  };
  process.on('message', (job: Job) => {
    let answer: JobAnswer<Result>;
    try {
      answer = { result: doJob(job) };
    } catch (error) {
      answer = { error };
    }
    say(answer);
  });
  // Ctrl-C in a terminal reaches all of its processes; the parent is the one that decides.
  process.on('SIGINT', () => undefined);
  const watch = new Worker(WATCH_PARENT, { eval: true, execArgv: [] });
  watch.unref();
  watch.once('online', () => say(PROCESS_READY));
}
