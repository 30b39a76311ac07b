/**
 * An HTTP face of the gRPC service, for what speaks HTTP, such as the rehearsal. It decides nothing: headers become
 * metadata, a rich status becomes its problem again (RFC 9457), and gate, guard and condition are behind it.
 */
import { createServer } from 'node:http';
import { Metadata } from '@grpc/grpc-js';
import { WritError } from 'writ/runner';

const PASSED_ON = ['writ-lease', 'writ-fencing-token', 'authorization', 'if-match', 'x-request-id'];
const METHODS = { 'GET /releases/{env}': 'get', 'POST /releases/{env}/open': 'open', 'PUT /releases/{env}': 'promote' };
const STATUS = {
  INVALID_ARGUMENT: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  FAILED_PRECONDITION: 409,
  ABORTED: 412,
  UNAVAILABLE: 503,
};

/** `client`: of the gRPC service. */
export function httpFace(client) {
  return createServer(async (request, response) => {
    const reply = (status, body, headers = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    const body = (await request.toArray()).join('');
    const [, env, act = ''] = /^\/releases\/([^/?]+)(\/open)?$/.exec(request.url) ?? [];
    const method = METHODS[`${request.method} /releases/{env}${act}`];
    if (env === undefined || method === undefined) return reply(404, { title: 'Not found', status: 404 });

    const metadata = new Metadata();
    for (const name of PASSED_ON) if (request.headers[name]) metadata.set(name, request.headers[name]);
    const message = { ...(body === '' ? {} : JSON.parse(body)), env: decodeURIComponent(env) };
    client[method](message, metadata, (error, answer) => {
      if (error !== null) return reply(...problemOf(error), { 'content-type': 'application/problem+json' });
      const { version, ...rest } = answer;
      return reply(200, rest, version ? { etag: `"${version}"` } : {});
    });
  });
}

/** The problem that the service had, out of the details of its status; members of an ErrorInfo are texts. */
function problemOf(error) {
  const { code, message, reason, metadata } = WritError.from(error, '', '');
  const { retryable, ...members } = metadata;
  const status = reason === 'PRECONDITION_REQUIRED' ? 428 : (STATUS[code] ?? 500);
  return [
    status,
    { title: code, status, code: reason.toLowerCase(), detail: message, ...members, retryable: retryable === 'true' },
  ];
}
