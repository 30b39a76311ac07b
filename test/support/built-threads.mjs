// Vitest transforms the TypeScript that it runs itself, but no thread: threads of the code under test run what was built.
// (Transforming it in the thread would load a native library there, which crashes the process when the thread ends.)
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

if (!isMainThread && process.argv[1]?.endsWith('.js')) register('./built-modules.mjs', import.meta.url);
