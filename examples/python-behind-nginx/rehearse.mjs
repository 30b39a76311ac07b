/**
 * The classic collisions, played through nginx against the Python service (docs/rehearsals.md).
 *
 *     npm run build && node examples/python-behind-nginx/rehearse.mjs
 */
import { freeAddress, rehearse } from '../support/rehearse.mjs';
import { startAll } from './start.mjs';

const asked = await freeAddress();
const stage = await startAll({ asked });
try {
  process.exitCode = await rehearse({
    ...stage,
    config: new URL('rehearsal.yaml', import.meta.url),
    addresses: { '127.0.0.1:17411': asked, '127.0.0.1:7411': stage.http },
    endpoint: stage.grpc,
  });
} finally {
  await stage.close();
}
