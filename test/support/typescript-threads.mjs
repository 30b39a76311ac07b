// Threads of the code under test run its TypeScript: vitest transforms what it runs itself, but no thread.
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

if (!isMainThread && process.argv[1]?.endsWith('.js')) register('./typescript-hooks.mjs', import.meta.url);
