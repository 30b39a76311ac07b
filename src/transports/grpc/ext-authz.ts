import { status } from '@grpc/grpc-js';
import type { Confirmation } from '../../domain/credential.js';
import { invalidArgument } from '../../domain/fault.js';
import type * as wire from '../../gen/envoy/service/auth/v3/external_auth.js';
import { HeaderValueOption_HeaderAppendAction as AppendAction } from '../../gen/envoy/service/auth/v3/external_auth.js';
import type { CallContext, RouteAnswer, RouteCheckInput } from '../../services/api.js';
import { certificateThumbprint } from '../presenter.js';
import { requestIdOf } from '../request-id.js';
import type { CallHandler } from './handler.js';

/**
 * Envoy's `ext_authz` over gRPC. Envoy is the caller, and says by its own token or certificate who it is; what the
 * request holds is what it has seen of somebody else's. A denial carries the problem that the client gets; a request that
 * goes on loses what it presented to Writ, and gains the run's id in its place.
 */
export function extAuthz(handler: CallHandler): wire.AuthorizationServer {
  return {
    check: handler.unary<wire.CheckRequest, wire.CheckResponse>('Authorization/Check', async (api, call, request) => {
      const http = httpOf(request);
      const all = headerReader(http);
      const requestId = correlationOf(all('x-request-id'), call);
      const { principal, namespace, deadlineMs, signal } = call;
      const context = { principal, namespace, requestId, deadlineMs, signal };
      const answer = await api.checkRoute(context, questionOf(request, http, all));
      return answer.allowed ? passed(answer, requestId) : refused(answer.problem, requestId);
    }),
  };
}

function httpOf({ attributes }: wire.CheckRequest): wire.AttributeContext_HttpRequest {
  const http = attributes?.request?.http;
  if (http !== undefined) return http;
  const description = 'is required: only HTTP requests can be looked up in a route table';
  throw invalidArgument([{ field: 'attributes.request.http', description }]);
}

/** The id of the request that is asked about; the call's own where that has none, or several. */
function correlationOf(values: readonly string[], call: CallContext): string {
  return requestIdOf(values.length === 1 ? values[0] : undefined, () => call.requestId);
}

type HeaderReader = (name: string) => readonly string[];

function questionOf(
  { attributes }: wire.CheckRequest,
  http: wire.AttributeContext_HttpRequest,
  all: HeaderReader,
): RouteCheckInput {
  const given = (value: string): readonly string[] => (value === '' ? [] : [value]);
  return {
    method: given(http.method),
    host: given(http.host),
    target: given(http.path),
    presented: {
      authorization: all('authorization'),
      lease: all('writ-lease'),
      fencingToken: all('writ-fencing-token'),
      ifMatch: all('if-match'),
      ifNoneMatch: all('if-none-match'),
    },
    presenter: presenterOf(attributes?.source?.certificate ?? ''),
  };
}

/** Every value of a header. In `headers` Envoy has joined them by commas, which none of ours survives. */
function headerReader({ headers, headerMap }: wire.AttributeContext_HttpRequest): HeaderReader {
  if (headerMap === undefined) return (name) => (Object.hasOwn(headers, name) ? [headers[name] ?? ''] : []);
  const values = new Map<string, string[]>();
  for (const { key, value, rawValue } of headerMap.headers) {
    const name = key.toLowerCase();
    const text = rawValue.length > 0 ? Buffer.from(rawValue).toString('latin1') : value;
    values.set(name, [...(values.get(name) ?? []), text]);
  }
  return (name) => values.get(name) ?? [];
}

function presenterOf(certificate: string): Confirmation | null {
  if (certificate === '') return null;
  const thumbprint = certificateThumbprint(certificate);
  if (thumbprint !== null) return { kind: 'x5t#S256', thumbprint };
  const description = 'must be a certificate, PEM in URL encoding';
  throw invalidArgument([{ field: 'attributes.source.certificate', description }]);
}

type Passed = Extract<RouteAnswer, { allowed: true }>;
type Problem = Extract<RouteAnswer, { allowed: false }>['problem'];

/** What the service has no use for, or must not see: whoever reads its logs could present it. */
const TAKEN_AWAY = ['writ-lease', 'writ-fencing-token', 'writ-authorization', 'writ-presenter-certificate'];

function passed({ runId, reason, credentialPresented, admissionIds }: Passed, requestId: string): wire.CheckResponse {
  const headers = [set('x-request-id', requestId), set('writ-reason', reason)];
  const headersToRemove = [...TAKEN_AWAY];
  if (credentialPresented) headersToRemove.push('authorization', 'dpop');
  // What there is not of them, no client may tell the service either.
  for (const [name, value] of [
    ['writ-run-id', runId ?? ''],
    ['writ-admission-id', admissionIds.join(',')],
  ] as const) {
    if (value === '') headersToRemove.push(name);
    else headers.push(set(name, value));
  }
  return {
    status: { code: status.OK, message: '' },
    httpResponse: { $case: 'okResponse', value: { headers, headersToRemove } },
  };
}

const CODE_BY_STATUS: Readonly<Record<Problem['status'], status>> = {
  400: status.INVALID_ARGUMENT,
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  409: status.FAILED_PRECONDITION,
  428: status.FAILED_PRECONDITION,
  503: status.UNAVAILABLE,
};

function refused(problem: Problem, requestId: string): wire.CheckResponse {
  const headers = [
    set('content-type', 'application/problem+json'),
    set('cache-control', 'no-store'),
    set('writ-reason', problem.code),
    set('x-request-id', requestId),
  ];
  if (problem.status === 401) headers.push(set('www-authenticate', 'Bearer realm="writ"'));
  if (problem.retry_after !== undefined) headers.push(set('retry-after', String(problem.retry_after)));
  return {
    status: { code: CODE_BY_STATUS[problem.status], message: problem.code },
    httpResponse: {
      $case: 'deniedResponse',
      value: { status: { code: problem.status }, headers, body: JSON.stringify(problem) },
    },
  };
}

/** Replaces whatever the request brought under that name. */
function set(key: string, value: string): wire.HeaderValueOption {
  return {
    header: { key, value, rawValue: Buffer.alloc(0) },
    appendAction: AppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
  };
}
