import type { ChangeClass } from '../../route-table/index.js';

/** The statuses of refusals, with what each says. */
const TITLES = {
  400: 'Bad request',
  401: 'Not authenticated',
  403: 'Not allowed',
  404: 'Not found',
  409: 'Not allowed now',
  412: 'Version conflict',
  413: 'Too large',
  422: 'Not the same request',
  428: 'Condition required',
  429: 'Too many requests',
  500: 'Internal error',
  503: 'Cannot be decided now',
} as const;

/** The statuses that problems of the kit have. */
export type ProblemStatus = keyof typeof TITLES;

/** A refusal as RFC 9457 says it, with members that a machine can act on; `application/problem+json`. */
export interface Problem {
  /** `urn:writ:problem:<code>` */
  readonly type: string;
  /** The status' name. */
  readonly title: string;
  readonly status: ProblemStatus;
  /** What happened, in words; never a current token. */
  readonly detail: string;
  /** Stable, snake_case; of a denied fence check its reason, such as `stale_token`. */
  readonly code: string;
  readonly resource?: string;
  readonly action?: string;
  /** The version that the write was made from. */
  readonly expected_version?: string;
  /** The version that is there. */
  readonly current_version?: string;
  /** The change class of the write path (W4). */
  readonly conflict_category?: ChangeClass;
  /** True: the caller may try again by itself, in the way that `next` says. */
  readonly retryable: boolean;
  /** Who decides what happens now. */
  readonly resolver?: string;
  /** What to do. */
  readonly next?: string;
  readonly request_id?: string;
  /** Seconds to wait at least; also the Retry-After header. */
  readonly retry_after?: number;
  /** Members of a service's own. */
  readonly [member: string]: unknown;
}

/** A problem before it has its type and title. */
export interface ProblemInit {
  readonly status: ProblemStatus;
  /** Stable, snake_case. */
  readonly code: string;
  readonly detail: string;
  /** Default false. */
  readonly retryable?: boolean | undefined;
  readonly [member: string]: unknown;
}

/** The media type of a problem (RFC 9457). */
export const PROBLEM_CONTENT_TYPE = 'application/problem+json';

/**
 * Makes a problem of its parts; members that are undefined are left out.
 *
 * @example
 * const body = problem({ status: 428, code: 'precondition_required', detail: 'Send If-Match.', resource: 'release/prod-eu' });
 * console.log(body.type); // urn:writ:problem:precondition_required
 */
export function problem(init: ProblemInit): Problem {
  if (!/^[a-z][a-z0-9_]*$/.test(init.code)) throw new TypeError(`${JSON.stringify(init.code)} is no code of a problem`);
  const { status, code, detail, retryable = false, ...members } = init;
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return {
    type: `urn:writ:problem:${code}`,
    title: TITLES[status],
    status,
    detail,
    code,
    retryable,
    ...Object.fromEntries(given),
  };
}
