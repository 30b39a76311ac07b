import type { MatchedWrite } from '../../route-table/index.js';
import type { FenceDecision } from './check.js';
import type { CredentialRefused } from './credential-refused.js';
import { type Problem, type ProblemStatus, problem } from './problem.js';

/** Refusals of a gate, each with what its reader can do about it. */

/** A refusal on its way to the caller, whatever carries it. */
export interface GateRefusal {
  readonly problem: Problem;
  /** Headers that go with it: WWW-Authenticate, Retry-After, DPoP-Nonce. Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

const ASK_ANEW = 'Stop, and do not send this body again. Ask for a new lease, read, and decide anew.';
const DECLARE =
  'Ask for a write set that contains the resource with this action, and send the request under that lease.';
const OWN_LEASE = 'Use a lease of your own run, and say who you are as this service demands.';
const NEW_CREDENTIAL = 'Get a new credential for this service from the coordinator, and present that.';
const NEW_PROOF = 'Make a new DPoP proof for this request, with the nonce of the DPoP-Nonce header if it has one.';
const STOP = 'Stop working. The run gets no lease any more; ask whoever ended it before you begin a new one.';
const PARENT =
  'Stop, and do not send this body again. The lease of the parent run has ended, or that run. If your own run goes on, ask for a new lease, read, and decide anew.';
const WAIT = 'Stop. Wait until the operator has settled it, then read and decide anew.';
const TELL_TARGET = 'Tell the operators of this service: its setup does not let it decide about the resource.';
const VERSION = 'Read the resource, decide on what is there, and send its version in If-Match.';

/** By the reason of the fence check. What is not here is refused as forbidden, with the coordinator's own words. */
const BY_REASON: Readonly<Record<string, readonly [ProblemStatus, string]>> = {
  not_covered: [403, DECLARE],
  action_not_allowed: [403, DECLARE],
  no_write_authority: [403, 'Propose the change where this service takes proposals; this credential writes nothing.'],
  wrong_holder: [403, OWN_LEASE],
  unknown_lease: [403, OWN_LEASE],
  wrong_target: [403, TELL_TARGET],
  future_token: [
    403,
    'Present the token that the coordinator granted. If you did, tell its operator: history may be lost.',
  ],
  stale_token: [409, ASK_ANEW],
  released: [409, ASK_ANEW],
  expired: [409, ASK_ANEW],
  no_progress: [409, ASK_ANEW],
  revoked: [409, ASK_ANEW],
  taken_over: [409, ASK_ANEW],
  unclaimed: [409, ASK_ANEW],
  database_changed: [409, ASK_ANEW],
  map_changed: [409, ASK_ANEW],
  parent_ended: [409, PARENT],
  run_stopped: [409, STOP],
  run_ended: [409, STOP],
  suspended: [409, 'Wait until the child run that holds it has ended, then go on with the new token.'],
  not_granted: [409, 'Wait until the request is granted, then read, decide and send it with the token of the grant.'],
  frozen: [409, WAIT],
  in_doubt: [409, WAIT],
  version_required: [428, VERSION],
};

/** Reasons that are about the credential itself. */
const CREDENTIAL_REASONS: ReadonlySet<string> = new Set([
  'oversize',
  'malformed',
  'header_not_allowed',
  'alg_not_allowed',
  'wrong_type',
  'unknown_key',
  'bad_signature',
  'wrong_issuer',
  'claim_missing',
  'claim_invalid',
  'wrong_audience',
  'credential_expired',
  'not_yet_valid',
  'not_bound',
  'binding_mismatch',
  'credential_revoked',
]);

/** Closed by an operator's order, or until one has looked: the resolver of the change has no say in that. */
const OPERATORS: ReadonlySet<string> = new Set(['frozen', 'in_doubt']);

/** The first write that the coordinator denied, and the others by name. */
export function deniedBy(
  decision: Pick<FenceDecision, 'writes' | 'reason' | 'message'>,
  writes: readonly MatchedWrite[],
  requestId: string,
): GateRefusal {
  const index = Math.max(
    0,
    decision.writes.findIndex(({ allowed }) => !allowed),
  );
  const { reason, message } = decision.writes[index] ?? decision;
  const write = writes[index];
  const unauthenticated = CREDENTIAL_REASONS.has(reason);
  const [status, next] = unauthenticated ? ([401, NEW_CREDENTIAL] as const) : (BY_REASON[reason] ?? [403, ASK_ANEW]);
  const refused = writes.flatMap(({ resource, action }, at) => {
    const verdict = decision.writes[at];
    return verdict === undefined || verdict.allowed ? [] : [{ resource, action, code: verdict.reason }];
  });
  return {
    problem: problem({
      status,
      code: reason,
      detail: message,
      ...about(write),
      resolver: status !== 409 ? undefined : OPERATORS.has(reason) ? 'operator' : write?.resolver,
      next,
      request_id: requestId,
      refused: refused.length > 1 ? refused : undefined,
    }),
    headers: unauthenticated ? { 'www-authenticate': 'Bearer error="invalid_token"' } : {},
  };
}

function about(write: MatchedWrite | undefined): Record<string, unknown> {
  if (write === undefined) return {};
  const { resource, action, changeClass } = write;
  return { resource, action, conflict_category: changeClass };
}

/** Nothing was presented for a write that needs authority. */
export function nothingPresented(write: MatchedWrite | undefined, requestId: string): GateRefusal {
  const what = write === undefined ? 'A write' : `A write to ${write.resource}`;
  return {
    problem: problem({
      status: 401,
      code: 'credential_required',
      detail: `${what} needs the run's credential (Authorization), or its lease and token (writ-lease, writ-fencing-token).`,
      ...about(write),
      next: DECLARE,
      request_id: requestId,
    }),
    headers: { 'www-authenticate': 'Bearer' },
  };
}

/** The gate's own verifier refused the credential. */
export function credentialRefused(
  refused: CredentialRefused,
  write: MatchedWrite | undefined,
  requestId: string,
  nonce: string | undefined,
): GateRefusal {
  if (refused.reason === 'keys_unavailable' || refused.reason === 'proof_limit')
    return undecided(refused.reason, 'The credential cannot be verified now, so nothing is written.', write, requestId);
  const aboutProof = refused.reason.startsWith('proof_');
  return {
    problem: problem({
      status: 401,
      // As the coordinator says it of the same credential.
      code: refused.reason === 'expired' ? 'credential_expired' : refused.reason,
      detail: `${refused.message.charAt(0).toUpperCase()}${refused.message.slice(1)}.`,
      retryable: aboutProof,
      ...about(write),
      next: aboutProof ? NEW_PROOF : NEW_CREDENTIAL,
      request_id: requestId,
    }),
    headers: {
      'www-authenticate': refused.challenge,
      ...(nonce === undefined ? {} : { 'dpop-nonce': nonce }),
    },
  };
}

/** The request cannot be what it is meant to be. */
export function malformed(detail: string, requestId?: string): GateRefusal {
  const next = 'Send the request in the form that this service documents.';
  return {
    problem: problem({ status: 400, code: 'malformed_request', detail, next, request_id: requestId }),
    headers: {},
  };
}

/** The route table does not know the request. */
export function unrouted(detail: string, requestId: string): GateRefusal {
  const next = 'Use a route that this service declares. If it should be one, its owner declares it in the route table.';
  return {
    problem: problem({ status: 403, code: 'unrouted', detail, next, request_id: requestId }),
    headers: {},
  };
}

const RETRY_AFTER_SECONDS = 2;

/** No verdict: refused, and worth trying again (P8). What kept the gate from asking is for the service's own log. */
export function undecided(
  code: string,
  detail: string,
  write: MatchedWrite | undefined,
  requestId: string,
  retryable = true,
): GateRefusal {
  return {
    problem: problem({
      status: 503,
      code,
      detail,
      retryable,
      ...about(write),
      next: retryable
        ? 'Nothing was written. Send the same request again later, as long as your lease lives.'
        : TELL_TARGET,
      request_id: requestId,
      retry_after: retryable ? RETRY_AFTER_SECONDS : undefined,
    }),
    headers: retryable ? { 'retry-after': String(RETRY_AFTER_SECONDS) } : {},
  };
}
