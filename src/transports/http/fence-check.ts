import type { Context } from 'hono';
import type { Principal } from '../../auth/principal.js';
import type { Confirmation } from '../../domain/credential.js';
import { invalidArgument } from '../../domain/fault.js';
import type { RouteAnswer, WritApi } from '../../services/api.js';
import { certificateThumbprint } from '../presenter.js';
import { isRequestId } from '../request-id.js';
import { NO_STORE, PROBLEM_TYPE } from './problem.js';
import { allValues } from './raw-headers.js';
import type { RouteContext } from './route.js';

/**
 * The fence check for proxies (`auth_request` of nginx, forward authentication of Traefik and Caddy): a GET without a
 * body, all of it in headers. The proxy is the caller, and says by its own token or certificate who it is; what the
 * headers say is what it has seen of somebody else's request. The answer is 200 or one status per class of denial, with
 * the reason in `writ-reason`; of every denial `writ-problem` has the whole problem, for proxies that drop the body.
 */
export async function fenceCheck(
  c: RouteContext,
  principal: Principal,
  api: Pick<WritApi, 'checkRoute'>,
): Promise<Response> {
  refuseBody(c);
  const headers = allValues(c.env.incoming.rawHeaders);
  const all = (...names: string[]): string[] => names.flatMap((name) => headers.get(name) ?? []);
  const requestId = c.get('requestId');
  const context = { principal, namespace: '', requestId, deadlineMs: null, signal: c.req.raw.signal };
  const answer = await api.checkRoute(context, {
    method: all('x-original-method', 'x-forwarded-method'),
    host: all('x-original-host', 'x-forwarded-host'),
    target: all('x-original-uri', 'x-forwarded-uri'),
    presented: {
      authorization: all('writ-authorization'),
      lease: all('writ-lease'),
      fencingToken: all('writ-fencing-token'),
      ifMatch: all('if-match'),
      ifNoneMatch: all('if-none-match'),
    },
    presenter: presenterOf(all('writ-presenter-certificate')),
    ...attemptOf(all('writ-attempt-id')),
  });
  return toResponse(c, answer);
}

/** A body that is announced and never sent would swallow the next request on the connection. */
function refuseBody(c: Context): void {
  const length = c.req.header('content-length') ?? '0';
  if (length === '0' && c.req.header('transfer-encoding') === undefined) return;
  c.header('connection', 'close');
  const description = 'must not be there: a fence check has no body (nginx: proxy_set_header Content-Length "")';
  throw invalidArgument([{ field: 'content-length', description }]);
}

/** The client certificate of the run's session with the proxy. */
function presenterOf(values: readonly string[]): Confirmation | null {
  const [value = ''] = values;
  if (value === '') return null;
  const thumbprint = values.length === 1 ? certificateThumbprint(value) : null;
  if (thumbprint !== null) return { kind: 'x5t#S256', thumbprint };
  const description = 'must be one certificate, PEM in URL encoding ($ssl_client_escaped_cert of nginx)';
  throw invalidArgument([{ field: 'writ-presenter-certificate', description }]);
}

/** The proxy's own id of the request, by which a check that it repeats is known. */
function attemptOf(values: readonly string[]): { attemptId?: string } {
  const [attemptId = ''] = values;
  if (attemptId === '') return {};
  if (values.length === 1 && isRequestId(attemptId)) return { attemptId };
  const description =
    'must be one id of at most 128 printable ASCII characters that the proxy has made ($request_id of nginx)';
  throw invalidArgument([{ field: 'writ-attempt-id', description }]);
}

/** Proxies keep the headers of an answer in buffers of 4 KiB; what is long and not needed to act is left out. */
const MAX_PROBLEM_HEADER = 2_048;

function toResponse(c: Context, answer: RouteAnswer): Response {
  if (answer.revision !== null) c.header('writ-log-revision', String(answer.revision));
  if (!answer.allowed) return toProblem(c, answer.problem);
  c.header('writ-reason', answer.reason);
  if (answer.observedOnly) c.header('writ-observed-only', 'true');
  // Also where there is none of them: what a proxy copies must replace what the client sent under that name.
  c.header('writ-run-id', answer.runId ?? '');
  c.header('writ-admission-id', answer.admissionIds.join(','));
  if (answer.validFor !== null) c.header('writ-valid-for', `${Math.floor(answer.validFor / 1_000)}ms`);
  return c.body('', 200, NO_STORE);
}

function toProblem(c: Context, problem: Extract<RouteAnswer, { allowed: false }>['problem']): Response {
  c.header('writ-reason', problem.code);
  c.header('writ-problem', inHeader(problem));
  if (problem.status === 401) c.header('www-authenticate', 'Bearer realm="writ"');
  if (problem.retry_after !== undefined) c.header('retry-after', String(problem.retry_after));
  return c.body(JSON.stringify(problem), problem.status, PROBLEM_TYPE);
}

function inHeader(problem: object): string {
  const whole = toAscii(problem);
  if (whole.length <= MAX_PROBLEM_HEADER) return whole;
  return toAscii({ ...problem, resource: undefined, detail: undefined, refused: undefined });
}

/** JSON of ASCII alone is a header's value as it stands. */
function toAscii(value: object): string {
  const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escaped);
}
