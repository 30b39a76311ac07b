// Vitest transforms the TypeScript that it runs itself, but none of the processes that the code under test starts: those
// run what was built.
import { register } from 'node:module';

if (process.argv[1]?.includes('/node_modules/') !== true) register('./built-modules.mjs', import.meta.url);
