// The harness is TypeScript, and so are the helpers of the tests: Vite, which runs those, runs it too. The module that
// is imported does its work while it is imported, since Vite closes its runner afterwards.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

await runnerImport(fileURLToPath(new URL('run.ts', import.meta.url)), { configFile: false, logLevel: 'error' });
