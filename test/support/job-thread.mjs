import { parentPort, threadId } from 'node:worker_threads';

/** Jobs of the tests of JobThread. */
parentPort.on('message', ({ kind, value }) => {
  if (kind === 'leave') process.exit(3);
  if (kind === 'fail') return parentPort.postMessage({ error: new TypeError('not so') });
  for (let hoard = []; kind === 'hoard'; ) hoard = [hoard, new Array(1_000).fill(value)];
  while (kind === 'spin');
  parentPort.postMessage({ result: { value, threadId } });
});
parentPort.postMessage({ ready: true });
