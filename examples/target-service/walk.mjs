/** A walk through the service with a coordinator, runs and a person: npm run build && node examples/target-service/walk.mjs */
import { randomUUID } from 'node:crypto';
import { serve } from '@hono/node-server';
import pg from 'pg';
import { acquire, toTimestamp } from 'writ/runner';
import { openStage, seen, until } from '../support/stage.mjs';
import { createService } from './service.mjs';

const stage = await openStage(new URL('map.yaml', import.meta.url));
const pool = new pg.Pool({ connectionString: stage.databaseUrl });
pool.on('error', () => undefined);
let server;
let service;
try {
  const operatorToken = randomUUID();
  service = await createService({ pool, writ: await stage.client('target'), operatorToken, log: () => undefined });
  const url = await new Promise((resolve) => {
    server = serve({ fetch: service.app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) =>
      resolve(`http://127.0.0.1:${port}`),
    );
  });
  await walk({ url, operatorToken });
  console.log('done');
} finally {
  server?.closeAllConnections();
  server?.close();
  await service?.close();
  await pool.end();
  await stage.close();
}

async function walk({ url, operatorToken }) {
  const runner = await stage.client('runner');
  const newRun = async (purpose) => {
    const { run } = await runner.run.createRun({
      purpose,
      allowed: [
        { pattern: 'release/{env}', actions: ['promote'] },
        { pattern: 'policy/{id}', actions: ['patch', 'replace'] },
      ],
      authorityEndsAt: toTimestamp((Date.now() + 600_000) * 1000),
    });
    return run.runId;
  };
  const send = async (method, path, headers = {}, body) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID(), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const told = await answer.json();
    return {
      status: answer.status,
      etag: answer.headers.get('etag'),
      replayed: answer.headers.get('idempotency-replayed'),
      ...told,
    };
  };
  const told = ({ status, code = '' }) => `${status} ${code}`.trim();
  const under = (lease, resource) => ({ 'writ-lease': lease.id, 'writ-fencing-token': String(lease.token(resource)) });
  const hold = (runId, resource, ...actions) => acquire(runner, { runId, resources: [{ resource, actions }] });

  // A run promotes a release that it holds.
  const first = await newRun('release 1.9.0');
  const lease = await hold(first, 'release/prod-eu', 'promote');
  const mine = under(lease, 'release/prod-eu');
  seen('the holder opens', told(await send('POST', '/releases/prod-eu/open', mine)), '200');
  const { etag } = await send('GET', '/releases/prod-eu');
  const key = { 'idempotency-key': randomUUID() };
  const promotion = { ...mine, 'if-match': etag, ...key };
  seen('and promotes', told(await send('PUT', '/releases/prod-eu', promotion, { image: 'shop:1.9.0' })), '200');
  const again = await send('PUT', '/releases/prod-eu', promotion, { image: 'shop:1.9.0' });
  seen('the same request again is not done again', `${again.status} version ${again.version}`, '200 version 8');

  // What it did not declare, what it did not read, and what nobody declared.
  seen('what was not declared', told(await send('PUT', '/releases/staging', promotion, {})), '403 not_covered');
  const stale = await send('PUT', '/releases/prod-eu', { ...mine, 'if-match': etag }, { image: 'shop:2.0.0' });
  seen(
    'the version before',
    `${told(stale)}, ${stale.resolver} decides`,
    '412 version_conflict, release-owner decides',
  );
  seen(
    'no version at all',
    told(await send('PUT', '/releases/prod-eu', mine, { image: 'x' })),
    '428 precondition_required',
  );
  seen('nobody', told(await send('PUT', '/releases/prod-eu', { 'if-match': '"8"' }, {})), '401 credential_required');
  seen(
    'a path that means two things',
    told(await send('PUT', '/releases/prod-eu%2Fx', mine, {})),
    '400 malformed_request',
  );

  // Another run takes over while the first one sleeps.
  await lease.release();
  const second = await newRun('release 1.9.1');
  const newer = await hold(second, 'release/prod-eu', 'promote');
  const theirs = under(newer, 'release/prod-eu');
  await send('POST', '/releases/prod-eu/open', theirs);
  seen(
    'the first run wakes up',
    told(await send('PUT', '/releases/prod-eu', { ...mine, 'if-match': '"8"' }, { image: 'late' })),
    '409 released',
  );

  // Two runs patch one policy side by side: no lock, the version decides.
  const [patcher, other] = [
    await hold(first, 'policy/prod-alerts', 'patch'),
    await hold(second, 'policy/prod-alerts', 'patch'),
  ];
  const patch = (by, version, added) =>
    send(
      'PATCH',
      '/policies/prod-alerts',
      { ...under(by, 'policy/prod-alerts'), 'if-match': version },
      { add_destination: added },
    );
  seen('one patches', told(await patch(patcher, '"41"', 'mail:ops')), '200');
  const clash = await patch(other, '"41"', 'chat:ops');
  seen('the other reads again', `${told(clash)}, retryable ${clash.retryable}`, '412 version_conflict, retryable true');
  seen('and decides anew', told(await patch(other, `"${clash.current_version}"`, 'chat:ops')), '200');

  // The coordinator goes; a person does not wait for it.
  await stage.stopCoordinator();
  const down = await send('PUT', '/releases/prod-eu', { ...theirs, 'if-match': '"8"' }, { image: 'shop:1.9.1' });
  seen('the coordinator is down', told(down), '503 coordinator_unreachable');
  const person = { 'x-operator-token': operatorToken };
  const why = { why: 'prod-eu is broken, and the coordinator is down', minutes: 30, patterns: ['release/prod-eu'] };
  seen('a person overrides', (await send('POST', '/overrides', person, why)).who, 'operator');
  const requestId = randomUUID();
  const byHand = { ...person, 'if-match': '"8"', 'x-request-id': requestId };
  seen('and rolls back by hand', told(await send('PUT', '/releases/prod-eu', byHand, { image: 'shop:1.8.2' })), '200');
  await stage.startCoordinator();
  const auditor = await stage.client('auditor');
  const [event] = await until(async () => {
    const { events } = await auditor.audit
      .listEvents({ requestId, kinds: ['override_reported'] })
      .catch(() => ({ events: [] }));
    return events.length > 0 && events;
  });
  seen(
    'the coordinator is back, and knows',
    `${JSON.parse(event.body).who} wrote ${event.resources}`,
    'operator wrote release/prod-eu',
  );
  const after = await until(async () => {
    const answer = await send('PUT', '/releases/prod-eu', { ...theirs, 'if-match': '"9"' }, { image: 'shop:1.9.1' });
    return answer.status !== 503 && answer;
  });
  seen('the run that held it before cannot write over that', told(after), '409 stale_token');
  const kept = await send('GET', '/records');
  const results = Object.values(kept).filter((one) => one?.result === 'written').length;
  seen('the service has its own record of what was written', results, 4);
}
