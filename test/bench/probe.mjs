import { basename } from 'node:path';

/**
 * Loaded into the coordinator before its own code, so that the bench can ask for a full garbage collection and how
 * much memory is in use afterwards. Also ends the coordinator, with its Postgres, when the bench has died.
 */
function probe() {
  process.on('message', (message) => {
    if (message !== 'memory') return;
    // Without options, which make it collect less; and again, as what one leaves behind is found by the next.
    for (let i = 0; i < 3; i += 1) globalThis.gc?.();
    process.send?.({ memory: process.memoryUsage() });
  });
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  // Listening must not keep a coordinator alive that has stopped.
  process.channel?.unref();
}

// A process that the coordinator starts is given what it was loaded with, and has a channel of its own to live by.
if (basename(process.argv[1] ?? '') === 'main.js') probe();
