import { authorize } from '../auth/roles.js';
import { Fault, type FaultClass, invalidArgument } from '../domain/fault.js';
import { randomId } from '../engine/random-id.js';
import type { MatchedWrite } from '../route-table/index.js';
import { matchRoute, presentsCredential } from '../route-table/index.js';
import type { CallContext, RouteAnswer, RouteCheckInput } from './api.js';
import { checkFence } from './check-fence.js';
import type { Deps } from './deps.js';
import { type Presented, readPresented } from './presented-write.js';
import { deniedWrites, nothingPresented, type RouteProblem, routeProblem } from './route-problem.js';

/**
 * CheckRoute: whether a gateway may let a request through to the service behind it (C10). The caller's route table says
 * which writes the request makes; what it presents is checked for all of them together, as CheckFence does for a target
 * that asks by itself. What cannot be read in one way only is refused, never guessed.
 */
export async function checkRoute(deps: Deps, context: CallContext, input: RouteCheckInput): Promise<RouteAnswer> {
  const { name } = context.principal;
  const routes = deps.routes.of(name);
  if (routes === null) throw noRoutes(name);
  const principal = authorize(context.principal, 'FenceService/CheckFence', routes.namespace);
  const { requestId } = context;
  const within = { principal, namespace: routes.namespace, requestId, deadlineMs: null, signal: context.signal };
  const answer = await decide(deps, within, input, routes.table);
  deps.metrics.routeChecked(answer.allowed ? answer.reason : answer.problem.code);
  return answer;
}

async function decide(
  deps: Deps,
  context: CallContext,
  input: RouteCheckInput,
  table: Parameters<typeof matchRoute>[0],
): Promise<RouteAnswer> {
  const { requestId } = context;
  const request = originalOf(input);
  if ('message' in request) return denied(malformed(request.message, requestId));
  const match = matchRoute(table, request);
  switch (match.kind) {
    case 'reads':
    case 'unprotected':
      return {
        ...UNCHECKED,
        reason: match.kind,
        credentialPresented: input.presented.authorization.some(presentsCredential),
      };
    case 'malformed':
      return denied(malformed(match.message, requestId));
    case 'unrouted':
      noteUnrouted(deps, context);
      return denied(unrouted(match.message, requestId));
    case 'writes': {
      const read = readPresented(input.presented, match.writes.length);
      if (!read.ok) return denied(malformed(`What the request presents cannot be read: ${read.message}.`, requestId));
      return checkWrites(deps, context, input, match.writes, read.presented);
    }
  }
}

async function checkWrites(
  deps: Deps,
  context: CallContext,
  { presenter, attemptId = randomId() }: RouteCheckInput,
  writes: readonly MatchedWrite[],
  { leaseId, credential, tokens, observedVersion, nothing }: Presented,
): Promise<RouteAnswer> {
  const { requestId } = context;
  const question = {
    leaseId,
    credential,
    presenter,
    presenterRunId: '',
    // Each request is an attempt of its own, whatever id its caller sends: one admission never stands for two (R4).
    requestId: attemptId,
    writes: writes.map(({ resource, action }, at) => ({ resource, action, token: tokens[at] ?? 0, observedVersion })),
  };
  try {
    const { value, revision } = await checkFence(deps, context, question);
    const { allowed, results, holder, validFor, admissionIds = [] } = value;
    if (allowed) {
      const observed = results.find(({ reason }) => reason !== 'ok');
      return {
        allowed,
        reason: observed?.reason ?? 'ok',
        observedOnly: observed !== undefined,
        runId: holder?.runId ?? null,
        credentialPresented: credential !== '',
        revision,
        validFor,
        admissionIds: admissionIds.filter((id) => id !== ''),
      };
    }
    const problem = nothing ? nothingPresented(writes, requestId) : deniedWrites(writes, results, requestId);
    return { allowed, problem, revision };
  } catch (error) {
    if (error instanceof Fault && UNDECIDED.has(error.faultClass)) return denied(undecided(error, requestId));
    throw error;
  }
}

const UNCHECKED = {
  allowed: true,
  observedOnly: false,
  runId: null,
  revision: null,
  validFor: null,
  admissionIds: [],
} as const;

/** Nothing is wrong with the request; nobody can say now whether it may pass (P8). */
const UNDECIDED: ReadonlySet<FaultClass> = new Set(['unavailable', 'resource_exhausted', 'unknown_outcome']);
const RETRY_AFTER_SECONDS = 1;

const denied = (problem: RouteProblem): RouteAnswer => ({ allowed: false, problem, revision: null });

/** The one reading of what the proxy says about the request. */
function originalOf(
  input: RouteCheckInput,
): { readonly method: string; readonly host: string; readonly path: string } | { readonly message: string } {
  const parts = { method: input.method, host: input.host, path: input.target };
  for (const [part, values] of Object.entries(parts)) {
    if (values.length === 0) {
      const description = `is missing: the proxy has to say which ${part} it was asked for`;
      throw invalidArgument([{ field: part, description }]);
    }
    if (new Set(values).size > 1) return { message: `The request's ${part} was told in different ways.` };
  }
  return { method: input.method[0] ?? '', host: input.host[0] ?? '', path: input.target[0] ?? '' };
}

function malformed(detail: string, requestId: string): RouteProblem {
  const next = 'Send each header once, and the path in its normal form.';
  return routeProblem({ status: 400, code: 'malformed_request', detail, next, request_id: requestId });
}

function unrouted(detail: string, requestId: string): RouteProblem {
  const next = 'Use a path that the service documents, or ask whoever runs the gateway to classify this one.';
  return routeProblem({ status: 403, code: 'unrouted', detail, next, request_id: requestId });
}

function undecided({ reason, message }: Fault, requestId: string): RouteProblem {
  return routeProblem({
    status: 503,
    code: reason.toLowerCase(),
    detail: `Whether this may be written cannot be decided now, so it is refused: ${message}`,
    retryable: true,
    next: 'Send the same request again later.',
    retry_after: RETRY_AFTER_SECONDS,
    request_id: requestId,
  });
}

/** Of a path that no route names no resource is known; the attempt is recorded all the same (A1). */
function noteUnrouted(deps: Deps, { namespace, principal, requestId }: CallContext): void {
  const nobody = { resource: '', action: '', runId: '', leaseId: '', presentedRun: '', observedOnly: false };
  deps.metrics.denied(namespace, 'unrouted');
  deps.denials.note(namespace, { ...nobody, reason: 'unrouted', target: principal.name }, [requestId]);
}

function noRoutes(name: string): Fault {
  return new Fault(
    'permission_denied',
    'NO_ROUTES',
    `there is no route table for ${name}: WRIT_ROUTES_FILE says which paths of a service make which writes`,
  );
}
