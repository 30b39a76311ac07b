/**
 * Loaded into the coordinator before its own code, so that the bench can ask for a full garbage collection and how
 * much memory is in use afterwards. Also ends the coordinator, with its Postgres, when the bench has died.
 */
process.on('message', (message) => {
  if (message !== 'memory') return;
  // The last resort also gives empty pages back to the system.
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  process.send?.({ memory: process.memoryUsage() });
});
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
// Listening must not keep a coordinator alive that has stopped.
process.channel?.unref();
