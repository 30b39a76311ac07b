// Usage: node write.mjs <openapi.json> <types.ts>
import { readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';

const [from = '', to = ''] = process.argv.slice(2);
const tree = await openapiTS(JSON.parse(readFileSync(from, 'utf8')), { alphabetize: true });
writeFileSync(to, `// Generated from docs/openapi.json by \`npm run gen\`. Do not edit.\n\n${astToString(tree)}`);
