/** job-process.mjs, on a machine that takes 2.5 s to load it. */
const until = performance.now() + 2_500;
while (performance.now() < until);
await import('./job-process.mjs');
