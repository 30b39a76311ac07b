import type { Context } from 'hono';
import { Fault, type FaultClass } from '../../domain/fault.js';
import { RETRY_AFTER_MS } from '../rate-limit.js';
import { UnsupportedMediaType } from './media-type.js';

/** Faults of calls as RFC 9457 has them. */

export const NO_STORE = { 'cache-control': 'no-store' };
export const PROBLEM_TYPE = { ...NO_STORE, 'content-type': 'application/problem+json' };

const TITLES = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  428: 'Precondition Required',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
} as const;

const STATUS_BY_CLASS: Partial<Record<FaultClass, keyof typeof TITLES>> = {
  invalid_argument: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  already_exists: 409,
  failed_precondition: 409,
  aborted: 409,
  resource_exhausted: 429,
  unavailable: 503,
  unknown_outcome: 503,
};

/** A fault that its caller may know. */
export interface ToldFault {
  readonly fault: Fault;
  readonly status: keyof typeof TITLES;
  /** As gRPC names it too. */
  readonly reason: string;
}

/** What a call threw, as far as its caller may know of it; null: nothing, and the coordinator's log has the cause. */
export function toldFault(error: unknown): ToldFault | null {
  const status = error instanceof Fault ? STATUS_BY_CLASS[error.faultClass] : undefined;
  if (!(error instanceof Fault) || status === undefined) return null;
  return { fault: error, status, reason: error.faultClass === 'unknown_outcome' ? 'UNKNOWN_OUTCOME' : error.reason };
}

/** An error; `reason` is the stable code. */
export function problem(
  c: Context,
  status: keyof typeof TITLES,
  reason: string,
  detail: string,
  more: Readonly<Record<string, unknown>> = {},
): Response {
  const body = { type: 'about:blank', title: TITLES[status], status, detail, reason, ...more };
  return c.body(JSON.stringify(body), status, PROBLEM_TYPE);
}

/** The same where no answer can be given any more: said at the end of a stream. */
export function problemText(fault: Fault): string {
  const status = STATUS_BY_CLASS[fault.faultClass] ?? 500;
  const { message: detail, reason } = fault;
  return JSON.stringify({ type: 'about:blank', title: TITLES[status], status, detail, reason });
}

/** RFC 6750 §3.1: who presented nothing is only told what to present; who did, that it is not good. */
function challenge(c: Context): string {
  const presented = c.req.header('authorization') !== undefined;
  return presented ? 'Bearer realm="writ", error="invalid_token"' : 'Bearer realm="writ"';
}

/** With what would be accepted, for programs in the header that RFC 9110 has for it (15.5.16). */
function wrongType(c: Context, { field, accepted, message }: UnsupportedMediaType): Response {
  c.header(field === 'content-type' ? 'accept' : 'accept-encoding', accepted);
  const violations = [{ field, description: `must be ${accepted}` }];
  return problem(c, 415, 'UNSUPPORTED_MEDIA_TYPE', message, { violations });
}

/** When to try again, where a fault does not say. */
const DEFAULT_RETRY_MS = 1_000;

/** What a call threw; null: nothing that its caller may know. `more` comes beside what every problem has. */
export function faultProblem(
  c: Context,
  error: unknown,
  more: Readonly<Record<string, unknown>> = {},
): Response | null {
  if (error instanceof UnsupportedMediaType) return wrongType(c, error);
  const told = toldFault(error);
  if (told === null) return null;
  const { status, reason } = told;
  const { message, details } = told.fault;
  if (status === 401) c.header('www-authenticate', challenge(c));
  if (status === 429 || status === 503) {
    c.header('retry-after', String(Math.ceil(Number(details.metadata?.[RETRY_AFTER_MS] ?? DEFAULT_RETRY_MS) / 1_000)));
  }
  return problem(
    c,
    status,
    reason,
    message,
    details.violations === undefined ? more : { violations: details.violations, ...more },
  );
}
