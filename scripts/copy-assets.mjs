// What the compiler does not carry over to dist: descriptors, SQL and maps, next to the code that reads them.
import { cpSync } from 'node:fs';

for (const [from, to] of [['src/gen/descriptor.binpb', 'dist/gen/descriptor.binpb']]) {
  cpSync(from, to);
}
