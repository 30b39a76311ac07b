import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

/** The web console: src/console, built into dist/console, from where the coordinator serves it. */
export default defineConfig({
  root: fileURLToPath(new URL('src/console', import.meta.url)),
  build: {
    outDir: fileURLToPath(new URL('dist/console', import.meta.url)),
    emptyOutDir: true,
    target: 'es2023',
    // The strict Content-Security-Policy knows no data: of code or style.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // How long a plugin took on a slow machine is nothing that whoever starts the coordinator can act on.
    rolldownOptions: { checks: { bundlerTimings: false } },
    // The map editor is a part of its own, and the largest.
    chunkSizeWarningLimit: 700,
  },
});
