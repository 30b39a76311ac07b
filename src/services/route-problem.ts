import type { FenceReason, WriteVerdict } from '../domain/fence.js';
import type { ChangeClass, MatchedWrite } from '../route-table/index.js';

/**
 * A refusal for the client of a service behind a gateway, as RFC 9457 has it: the same members as the target kit's, so
 * that an agent need not know which of the two said no. One status per class of denial.
 */
export interface RouteProblem {
  /** `urn:writ:problem:<code>` */
  readonly type: string;
  readonly title: string;
  readonly status: keyof typeof TITLES;
  /** What happened, in words; never a current token. */
  readonly detail: string;
  /** Stable; of a denied check its reason. */
  readonly code: string;
  readonly resource?: string;
  readonly action?: string;
  /** The change class of the write path (W4). */
  readonly conflict_category?: ChangeClass;
  readonly retryable: boolean;
  readonly resolver?: string;
  /** What to do. */
  readonly next: string;
  readonly request_id: string;
  /** Seconds to wait at least. */
  readonly retry_after?: number;
  /** All writes that were denied, where there are several. */
  readonly refused?: readonly { readonly resource: string; readonly action: string; readonly code: string }[];
}

const TITLES = {
  400: 'Bad request',
  401: 'Not authenticated',
  403: 'Not allowed',
  409: 'Not allowed now',
  428: 'Condition required',
  503: 'Cannot be decided now',
} as const;

type Parts = Omit<RouteProblem, 'type' | 'title' | 'retryable'> & { readonly retryable?: boolean };

export function routeProblem({ status, code, detail, retryable = false, ...members }: Parts): RouteProblem {
  return { type: `urn:writ:problem:${code}`, title: TITLES[status], status, detail, code, retryable, ...members };
}

interface DenialClass {
  readonly status: 401 | 403 | 409 | 428;
  readonly next: string;
}

const READ_AGAIN = 'Do not send this body again: read what is there now, and decide anew.';

const CLASSES = {
  not_presented: {
    status: 401,
    next: 'Present a credential of the run that is for this service (authorization: Bearer), or its writ-lease and writ-fencing-token.',
  },
  undeclared: {
    status: 403,
    next: 'Ask for a write set that contains this resource and action; the contract of the run must allow it.',
  },
  not_yours: { status: 403, next: 'Present what was granted to your own run.' },
  made_up: {
    status: 403,
    next: 'Present the token that the coordinator granted. If you did, tell its operator: history may be lost.',
  },
  not_here: {
    status: 403,
    next: 'Tell whoever runs this service: its route table and the conflict map disagree about who owns the resource.',
  },
  over: { status: 409, next: `Stop. Ask for a new lease. ${READ_AGAIN}` },
  run_over: {
    status: 409,
    next: 'Stop working: the run has ended and gets no new lease. What is left to do needs a new run.',
  },
  not_yet: { status: 409, next: 'Wait for the grant, and present the lease that it names.' },
  delegated: { status: 409, next: 'Wait until the child run that holds it has ended, then go on with the new token.' },
  frozen: {
    status: 409,
    next: 'Stop. Keep the lease, and wait until an operator has thawed it; then read what is there, and decide anew.',
  },
  in_doubt: {
    status: 409,
    next: 'Stop. Wait until its target or an operator has said what became of it; then read what is there, and decide anew.',
  },
  operator: { status: 409, next: 'Stop, and ask an operator: nobody writes this until they have looked at it.' },
  no_version: {
    status: 428,
    next: 'Read the resource, decide on what you have read, and send its version with If-Match.',
  },
} as const satisfies Record<string, DenialClass>;

const CLASS_OF: Readonly<Record<Exclude<FenceReason, 'ok'>, keyof typeof CLASSES>> = {
  stale_token: 'over',
  released: 'over',
  expired: 'over',
  no_progress: 'over',
  revoked: 'over',
  run_stopped: 'run_over',
  run_ended: 'run_over',
  taken_over: 'over',
  unclaimed: 'over',
  database_changed: 'operator',
  map_changed: 'over',
  parent_ended: 'over',
  suspended: 'delegated',
  not_covered: 'undeclared',
  action_not_allowed: 'undeclared',
  wrong_holder: 'not_yours',
  wrong_target: 'not_here',
  unknown_lease: 'not_yours',
  future_token: 'made_up',
  version_required: 'no_version',
  frozen: 'frozen',
  in_doubt: 'in_doubt',
  not_granted: 'not_yet',
  oversize: 'not_presented',
  malformed: 'not_presented',
  header_not_allowed: 'not_presented',
  alg_not_allowed: 'not_presented',
  wrong_type: 'not_presented',
  unknown_key: 'not_presented',
  bad_signature: 'not_presented',
  wrong_issuer: 'not_presented',
  claim_missing: 'not_presented',
  claim_invalid: 'not_presented',
  wrong_audience: 'not_presented',
  credential_expired: 'not_presented',
  not_yet_valid: 'not_presented',
  not_bound: 'not_presented',
  binding_mismatch: 'not_presented',
  credential_revoked: 'not_presented',
  no_write_authority: 'undeclared',
};

/** Closed by an operator's order, or until one has looked: the resolver of the change has no say in that. */
const OPERATORS: ReadonlySet<string> = new Set<FenceReason>(['frozen', 'in_doubt']);

/** The first write that the check denies, and the others by name. */
export function deniedWrites(
  writes: readonly MatchedWrite[],
  verdicts: readonly WriteVerdict[],
  requestId: string,
): RouteProblem {
  const refused = writes.flatMap((write, at) => {
    const verdict = verdicts[at];
    return verdict === undefined || verdict.allowed ? [] : [{ write, verdict }];
  });
  const [first] = refused;
  if (first === undefined || first.verdict.reason === 'ok') throw new Error('nothing was denied');
  const { reason, message } = first.verdict;
  const { status, next } = CLASSES[CLASS_OF[reason]];
  const others = refused.map(({ write: { resource, action }, verdict: { reason: code } }) => ({
    resource,
    action,
    code,
  }));
  return routeProblem({
    status,
    code: reason,
    detail: message,
    next,
    ...about(first.write),
    // Who decides once two have met; what was never declared is for the run itself to mend.
    ...(status === 409 ? { resolver: OPERATORS.has(reason) ? 'operator' : first.write.resolver } : {}),
    request_id: requestId,
    ...(others.length > 1 ? { refused: others } : {}),
  });
}

/** Nothing was presented for a write that needs something. */
export function nothingPresented([write]: readonly MatchedWrite[], requestId: string): RouteProblem {
  if (write === undefined) throw new Error('nothing would be written');
  const { status, next } = CLASSES.not_presented;
  const detail = `A write to ${JSON.stringify(write.resource)} needs a lease on it, and nothing was presented.`;
  return routeProblem({ status, code: 'credential_required', detail, next, ...about(write), request_id: requestId });
}

function about({ resource, action, changeClass }: MatchedWrite) {
  return { resource, action, conflict_category: changeClass };
}
