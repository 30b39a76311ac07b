/** The classic collisions, played against the service: npm run build && node examples/release-pointer-grpc/rehearse.mjs */
import { credentials, ServerCredentials } from '@grpc/grpc-js';
import pg from 'pg';
import { freeAddress, rehearse } from '../support/rehearse.mjs';
import { openStage } from '../support/stage.mjs';
import { httpFace } from './http-face.mjs';
import { createService, ReleasePointer } from './service.mjs';

const stage = await openStage(new URL('map.yaml', import.meta.url));
const pool = new pg.Pool({ connectionString: stage.databaseUrl });
pool.on('error', () => undefined);
const asked = await freeAddress();
let service;
let client;
let face;
try {
  service = await createService({ pool, writ: await stage.client('target', asked), log: () => undefined });
  const port = await new Promise((resolve, reject) => {
    service.server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  client = new ReleasePointer(`127.0.0.1:${port}`, credentials.createInsecure());
  face = httpFace(client);
  await new Promise((resolve) => face.listen(0, '127.0.0.1', resolve));
  process.exitCode = await rehearse({
    ...stage,
    config: new URL('rehearsal.yaml', import.meta.url),
    addresses: { '127.0.0.1:17410': asked },
    url: `http://127.0.0.1:${face.address().port}`,
  });
} finally {
  face?.closeAllConnections();
  face?.close();
  client?.close();
  service?.server.forceShutdown();
  await service?.close();
  await pool.end();
  await stage.close();
}
