/**
 * The service that owns the policy: it asks the coordinator before each write, and writes only on the version that the
 * run has read. Everything in memory, to keep it short.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { checkFence, connectWrit } from 'writ/target';

export async function startPolicyService({ endpoint, token }) {
  const writ = connectWrit({ endpoint, token });
  let policy = { version: 41, document: { destinations: ['ops@example.com'] } };

  const server = createServer(async (request, response) => {
    const reply = (status, body, headers = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    if (request.method === 'GET') return reply(200, policy.document, { etag: `"${policy.version}"` });

    const body = (await request.toArray()).join('');
    const observed = /^"(\d+)"$/.exec(request.headers['if-match'] ?? '')?.[1];
    if (observed === undefined) return refuse(reply, 428, 'precondition_required', 'Send If-Match.');
    const question = {
      credential: (request.headers.authorization ?? '').replace(/^Bearer /, ''),
      writes: [{ resource: 'notification-policy/7', action: 'patch', observedVersion: observed }],
      // Each request is an attempt of its own, whatever id its caller sends to find it by.
      requestId: randomUUID(),
    };
    const decision = await checkFence(writ, question, { requestId: request.headers['x-request-id'] });
    if (!decision.allowed) return refuse(reply, decision.error ? 503 : 403, decision.reason, decision.message);
    // From here to the change nothing else runs: check and change are one step.
    if (Number(observed) !== policy.version)
      return refuse(reply, 412, 'version_conflict', 'Somebody else was faster.', {
        resource: 'notification-policy/7',
        expected_version: observed,
        current_version: String(policy.version),
        conflict_category: 'derived',
        retryable: true,
      });
    policy = { version: policy.version + 1, document: JSON.parse(body) };
    return reply(200, policy.document, { etag: `"${policy.version}"` });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/policies/7`,
    close() {
      server.closeAllConnections();
      server.close();
      writ.close();
    },
  };
}

function refuse(reply, status, code, detail, more = {}) {
  const next =
    status === 503 ? 'Send the same again later.' : 'Read it again, and decide anew whether to write, and what.';
  const problem = {
    type: `urn:writ:problem:${code}`,
    title: code,
    status,
    code,
    detail,
    next,
    retryable: false,
    ...more,
  };
  reply(status, problem, { 'content-type': 'application/problem+json' });
}
