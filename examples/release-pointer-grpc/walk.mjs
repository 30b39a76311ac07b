/** A walk through the service with a coordinator and two runs: npm run build && node examples/release-pointer-grpc/walk.mjs */
import { credentials, Metadata, ServerCredentials, status } from '@grpc/grpc-js';
import pg from 'pg';
import { acquire, toTimestamp } from 'writ/runner';
import { openStage, seen } from '../support/stage.mjs';
import { createService, ReleasePointer } from './service.mjs';

const stage = await openStage(new URL('map.yaml', import.meta.url));
const pool = new pg.Pool({ connectionString: stage.databaseUrl });
pool.on('error', () => undefined);
let service;
let client;
try {
  service = await createService({ pool, writ: await stage.client('target'), log: () => undefined });
  const port = await new Promise((resolve, reject) => {
    service.server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  client = new ReleasePointer(`127.0.0.1:${port}`, credentials.createInsecure());
  await walk();
  console.log('done');
} finally {
  client?.close();
  service?.server.forceShutdown();
  await service?.close();
  await pool.end();
  await stage.close();
}

async function walk() {
  const runner = await stage.client('runner');
  const hold = async (purpose) => {
    const { run } = await runner.run.createRun({
      purpose,
      allowed: [{ pattern: 'release/{env}', actions: ['promote'] }],
      authorityEndsAt: toTimestamp((Date.now() + 600_000) * 1000),
    });
    return acquire(runner, { runId: run.runId, resources: [{ resource: 'release/prod-eu', actions: ['promote'] }] });
  };
  /** What a call answers: its message, or its status and stable code. */
  const call = (method, request, headers = {}) => {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    return new Promise((resolve) => {
      client[method](request, metadata, (error, answer) =>
        resolve(error === null ? answer : { refused: status[error.code], why: error.details }),
      );
    });
  };
  const under = (lease) => ({ 'writ-lease': lease.id, 'writ-fencing-token': String(lease.token('release/prod-eu')) });

  const first = await hold('release 1.9.0');
  await call('open', { env: 'prod-eu' }, under(first));
  const { version } = await call('get', { env: 'prod-eu' });
  const promote = (lease, observed, env = 'prod-eu') =>
    call('promote', { env, image: 'shop:1.9.0' }, { ...under(lease), 'if-match': `"${observed}"` });
  seen('the holder promotes, version', (await promote(first, version)).version, '8');
  seen('from the version before', (await promote(first, version)).refused, 'ABORTED');
  seen('what was not declared', (await promote(first, 3, 'staging')).refused, 'PERMISSION_DENIED');
  seen('nobody', (await call('promote', { env: 'prod-eu', image: 'x' })).refused, 'UNAUTHENTICATED');
  seen('a path in a field', (await promote(first, 8, 'prod-eu/x')).refused, 'INVALID_ARGUMENT');
  await first.release();

  const second = await hold('release 1.9.1');
  await call('open', { env: 'prod-eu' }, under(second));
  seen('the first run wakes up', (await promote(first, 8)).refused, 'FAILED_PRECONDITION');
  seen('the second promotes, version', (await promote(second, 8)).version, '9');
  await stage.stopCoordinator();
  seen('the coordinator is down', (await promote(second, 9)).refused, 'UNAVAILABLE');
  seen('reads go on, version', (await call('get', { env: 'prod-eu' })).version, '9');
}
