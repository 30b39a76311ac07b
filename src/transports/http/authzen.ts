import { randomUUID } from 'node:crypto';
import type { Principal } from '../../auth/principal.js';
import { authorize } from '../../auth/roles.js';
import type { Confirmation } from '../../domain/credential.js';
import { NO_LEASE } from '../../route-table/index.js';
import type { CheckFenceInput, WritApi } from '../../services/api.js';
import { toToken } from '../../services/presented-write.js';
import { type Evaluation, readEvaluation, readEvaluations } from './authzen-schema.js';
import { jsonOf } from './json-body.js';
import { NO_STORE, toldFault } from './problem.js';
import type { RouteContext } from './route.js';

/**
 * The OpenID Authorization API 1.0 (AuthZEN) over the fence check: may this run write that resource. The subject is the
 * run as the caller authenticated it, with its lease and token or its credential; the resource's id is its path.
 */

type Api = Pick<WritApi, 'checkFence'>;

interface Decision {
  readonly decision: boolean;
  readonly context: Readonly<Record<string, unknown>>;
}

/** Who asks, and by which request. */
interface Asking {
  readonly caller: Principal;
  readonly api: Api;
  readonly requestId: string;
  readonly signal: AbortSignal;
}

/** POST /access/v1/evaluation: one decision. */
export async function evaluate(c: RouteContext, caller: Principal, api: Api): Promise<Response> {
  const asking = askingOf(c, caller, api);
  return answerOne(c, await jsonOf(c), asking);
}

/** What a batch needs of the server. */
interface Batch {
  /** Each evaluation is a call of its own for the rate limit. */
  takeMore(calls: number): void;
  /** Told of what failed in the coordinator. */
  tell(error: unknown): void;
}

/** POST /access/v1/evaluations: several, each decided for itself. */
export async function evaluateAll(
  c: RouteContext,
  caller: Principal,
  api: Api,
  { takeMore, tell }: Batch,
): Promise<Response> {
  const asking = askingOf(c, caller, api);
  const body = await jsonOf(c);
  const batch = readEvaluations(body);
  if (batch === null) return answerOne(c, body, asking);
  const { evaluations, semantic } = batch;
  takeMore(evaluations.length - 1);
  const checkIds = checkIdsOf(evaluations);
  // What the others were let in for is told in any case: somebody has to report it (R4).
  const answer = (one: Evaluation, at: number): Promise<Decision> =>
    decide(one, checkIds[at] ?? randomUUID(), asking).catch((error: unknown) => {
      if (toldFault(error) === null) tell(error);
      return undecided(error, requestIdIn(one, asking));
    });
  if (semantic === 'execute_all')
    return c.json({ evaluations: await Promise.all(evaluations.map(answer)) }, 200, NO_STORE);
  const decisions: Decision[] = [];
  for (const [at, one] of evaluations.entries()) {
    const decision = await answer(one, at);
    decisions.push(decision);
    if (decision.decision === (semantic === 'permit_on_first_permit')) break;
  }
  return c.json({ evaluations: decisions }, 200, NO_STORE);
}

/** GET /.well-known/authzen-configuration. */
export function metadata(c: RouteContext, issuer: string): Response {
  const base = issuer.replace(/\/$/, '');
  const body = {
    policy_decision_point: issuer,
    access_evaluation_endpoint: `${base}/access/v1/evaluation`,
    access_evaluations_endpoint: `${base}/access/v1/evaluations`,
  };
  return c.json(body, 200, { 'cache-control': 'public, max-age=300' });
}

async function answerOne(c: RouteContext, body: unknown, asking: Asking): Promise<Response> {
  const evaluation = readEvaluation(body);
  const checkId = evaluation.context?.request_id ?? randomUUID();
  try {
    return c.json(await decide(evaluation, checkId, asking), 200, NO_STORE);
  } catch (error) {
    // Well-formed, and yet no write that could be asked about: denied, as the API wants it.
    if (toldFault(error)?.status !== 400) throw error;
    return c.json(undecided(error, requestIdIn(evaluation, asking)), 200, NO_STORE);
  }
}

/**
 * By which id each check is made: the one that the question names, if no other in the batch does, else one of its own. The
 * header's may be that of a run's request, which is sent again while the first still runs (R4).
 */
function checkIdsOf(evaluations: readonly Evaluation[]): string[] {
  const named = evaluations.map(({ context }) => context?.request_id);
  return named.map((id, at) =>
    id !== undefined && named.indexOf(id) === at && named.lastIndexOf(id) === at ? id : randomUUID(),
  );
}

const requestIdIn = ({ context }: Evaluation, { requestId }: Asking): string => context?.request_id ?? requestId;

async function decide(evaluation: Evaluation, checkId: string, asking: Asking): Promise<Decision> {
  const { caller, api, signal } = asking;
  const namespace = evaluation.context?.namespace ?? '';
  const principal = authorize(caller, 'FenceService/CheckFence', namespace === '' ? 'default' : namespace);
  const unsupported = unsupportedIn(evaluation);
  if (unsupported !== null) return unsupported;
  const requestId = requestIdIn(evaluation, asking);
  const context = { principal, namespace, requestId, deadlineMs: null, signal };
  const { value, revision } = await api.checkFence(context, questionOf(evaluation, checkId));
  const result = value.results[0];
  return {
    decision: value.allowed,
    context: {
      reason: result?.reason ?? 'ok',
      ...(result === undefined || result.message === '' ? {} : { message: result.message }),
      ...(result?.observedOnly === true ? { observed_only: true } : {}),
      ...(value.validFor === null ? {} : { valid_for: `${Math.floor(value.validFor / 1_000)}ms` }),
      ...(value.admissionIds?.[0] ? { admission_id: value.admissionIds[0] } : {}),
      log_revision: String(revision),
      request_id: requestId,
    },
  };
}

/** A question that could not be decided, as the API has it. */
function undecided(error: unknown, requestId: string): Decision {
  const told = toldFault(error);
  const { status, reason } = told ?? { status: 500, reason: 'INTERNAL' };
  const message = told?.fault.message ?? 'internal error; the coordinator has logged the cause';
  return { decision: false, context: { error: { status, reason, message }, request_id: requestId } };
}

/** There are no other subjects and resources here than runs and paths, so nothing may be done to or by them. */
function unsupportedIn({ subject, resource }: Evaluation): Decision | null {
  const denied = (what: string, only: string): Decision => ({
    decision: false,
    context: { reason: `unsupported_${what}`, message: `The ${what}'s type must be ${JSON.stringify(only)}.` },
  });
  if (subject.type !== 'run') return denied('subject', 'run');
  return resource.type === 'resource' ? null : denied('resource', 'resource');
}

function questionOf({ subject, resource, action }: Evaluation, requestId: string): CheckFenceInput {
  const { credential = '', lease_id: leaseId, fencing_token: token, cnf } = subject.properties ?? {};
  const observedVersion = resource.properties?.observed_version ?? null;
  return {
    leaseId: credential === '' ? (leaseId ?? NO_LEASE) : (leaseId ?? ''),
    credential,
    presenter: presenterOf(cnf),
    presenterRunId: subject.id,
    writes: [{ resource: resource.id, action: action.name, token: toToken(token ?? '0'), observedVersion }],
    requestId,
  };
}

function presenterOf(cnf: NonNullable<Evaluation['subject']['properties']>['cnf']): Confirmation | null {
  if (cnf === undefined) return null;
  return 'jkt' in cnf ? { kind: 'jkt', thumbprint: cnf.jkt } : { kind: 'x5t#S256', thumbprint: cnf['x5t#S256'] };
}

function askingOf(c: RouteContext, caller: Principal, api: Api): Asking {
  return { caller, api, requestId: echoRequestId(c), signal: c.req.raw.signal };
}

/** What the caller sent comes back as it was, recorded or not. */
function echoRequestId(c: RouteContext): string {
  const used = c.get('requestId');
  c.header('x-request-id', c.req.header('x-request-id') ?? used);
  return used;
}
