// The HTTP API as it is served, written down: docs/openapi.json, and from that the types that the console is made with.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { openApiDocument } from '../dist/transports/http/api/document.js';

writeFileSync('docs/openapi.json', `${JSON.stringify(openApiDocument(), null, 2)}\n`);
execFileSync('node', ['tools/api-types/write.mjs', 'docs/openapi.json', 'src/console/api-types.ts'], {
  stdio: 'inherit',
});
