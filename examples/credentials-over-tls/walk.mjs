/**
 * A run, a target and a thief, each with a client certificate of its own; nobody has a token. See docs/credentials.md.
 * WRIT_ENDPOINT and WRIT_ISSUER name the coordinator; certs/ is what `writ certs` made.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { acquire, connectWrit, toTimestamp } from 'writ/runner';
import { CredentialRefused, checkFence, createCredentialVerifier } from 'writ/target';

const { WRIT_ENDPOINT: endpoint, WRIT_ISSUER: issuer } = process.env;
const RESOURCE = 'release/prod-eu';
const pem = (name) => readFileSync(`certs/${name}.pem`);
const clientOf = (name) =>
  connectWrit({
    endpoint,
    tls: {
      caFile: 'certs/ca.pem',
      certFile: `certs/client-example.org-${name}.pem`,
      keyFile: `certs/client-example.org-${name}-key.pem`,
    },
  });

const runner = clientOf('runner');
const target = clientOf('release-api');

// The target: a service that asks for client certificates, and verifies what they present by itself.
const verifier = createCredentialVerifier({
  issuer,
  audience: 'svc:release-api',
  keys: new URL(`${issuer}/.well-known/jwks.json`),
  requireBinding: true,
});
const service = createServer(
  { key: pem('server-key'), cert: pem('server'), ca: pem('ca'), requestCert: true },
  async (incoming, answer) => {
    const token = (incoming.headers.authorization ?? '').replace(/^Bearer /, '');
    const certificateThumbprint = createHash('sha256')
      .update(incoming.socket.getPeerCertificate().raw)
      .digest('base64url');
    try {
      const credential = await verifier.verifyCredential(token, { certificateThumbprint });
      const allowed = credential.covers({ resource: RESOURCE, action: incoming.headers.action });
      answer.writeHead(allowed.allowed ? 200 : 403).end(allowed.allowed ? 'written' : allowed.reason);
    } catch (error) {
      if (!(error instanceof CredentialRefused)) throw error;
      answer.writeHead(401, { 'www-authenticate': error.challenge }).end(error.reason);
    }
  },
);
await new Promise((resolve) => service.listen(0, '127.0.0.1', resolve));

/** Writes as somebody, with a credential; what the target answers. */
function write(name, token, action = 'promote') {
  return new Promise((resolve, reject) => {
    request({
      port: service.address().port,
      host: '127.0.0.1',
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, action },
      ca: pem('ca'),
      cert: pem(`client-example.org-${name}`),
      key: pem(`client-example.org-${name}-key`),
      agent: false,
    })
      .on('response', async (response) => resolve((await response.toArray()).join('')))
      .on('error', reject)
      .end();
  });
}

/** Says what was seen, and ends the walk when it is not what this page promises. */
function seen(what, is, expected) {
  console.log(`${what}: ${is}`);
  if (is !== expected) throw new Error(`expected ${expected}`);
}

const { run } = await runner.run.createRun({
  purpose: 'release 4.2',
  allowed: [{ pattern: 'release/{env}', actions: ['promote'] }],
  authorityEndsAt: toTimestamp((Date.now() + 600_000) * 1000),
});
const lease = await acquire(runner, { runId: run.runId, resources: [{ resource: RESOURCE, actions: ['promote'] }] });
const issued = await runner.credential.issueCredential({
  runId: run.runId,
  leaseId: lease.id,
  audience: 'svc:release-api',
});
const { token } = issued.outcome.value;

seen('the run writes', await write('runner', token), 'written');
seen('what was not declared', await write('runner', token, 'delete'), 'action_not_allowed');
seen('a thief with the same token', await write('thief', token), 'binding_mismatch');
const question = { credential: token, writes: [{ resource: RESOURCE, action: 'promote' }] };
const asked = await checkFence(target, { ...question, presenter: { x5tS256: thumbprintOf('runner') } });
seen('the target asks all the same', asked.reason, 'ok');

await lease.release();
const after = await checkFence(target, { ...question, presenter: { x5tS256: thumbprintOf('runner') } });
seen('first refusal, by who asks the coordinator', after.reason, 'released');

// The target asks nobody, and so believes the credential until it ends: sixteen seconds at most, tolerance included.
let answer;
do {
  await pause(500);
  answer = await write('runner', token);
} while (answer === 'written');
seen('second refusal, by who asks nobody', answer, 'expired');

service.closeAllConnections();
service.close();
runner.close();
target.close();

function thumbprintOf(name) {
  const der = Buffer.from(
    pem(`client-example.org-${name}`)
      .toString()
      .replace(/-----[^-]+-----|\s/g, ''),
    'base64',
  );
  return createHash('sha256').update(der).digest('base64url');
}
