import { parentPort } from 'node:worker_threads';
import { type JobAnswer, THREAD_READY } from '../platform/job-thread.js';
import { type BoundedMapJob, doMapJob, type MapResult } from './map-jobs.js';

/** The thread of map-workshop.ts: one answer for each job, in order. */
parentPort?.on('message', (job: BoundedMapJob) => {
  let answer: JobAnswer<MapResult>;
  try {
    answer = { result: doMapJob(job) };
  } catch (error) {
    answer = { error };
  }
  parentPort?.postMessage(answer);
});
parentPort?.postMessage(THREAD_READY);
