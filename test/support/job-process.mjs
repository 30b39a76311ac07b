import { serveJobs } from '../../src/platform/job-server.js';

/** Jobs of the tests of JobProcess. */
serveJobs(({ kind, value }) => {
  if (kind === 'leave') process.exit(3);
  if (kind === 'fail') throw new TypeError('not so');
  for (let hoard = []; kind === 'hoard'; ) hoard = [hoard, new Array(1_000).fill(value)];
  while (kind === 'spin');
  if (kind === 'settings') return { value: Object.keys(process.env).length };
  return { value, pid: process.pid };
});
