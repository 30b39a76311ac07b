import { Metadata, status } from '@grpc/grpc-js';
import { ErrorInfo, RetryInfo } from '../../gen/google/rpc/error_details.js';
import { Status } from '../../gen/google/rpc/status.js';
import { toDuration } from '../common/time.js';
import type { Problem, ProblemStatus } from './problem.js';

/** A problem as gRPC says it. */
export interface GrpcStatus {
  readonly code: status;
  /** What happened and what to do, in words. */
  readonly details: string;
  /** The problem, for programs. */
  readonly metadata: Metadata;
}

const CODES: Readonly<Record<ProblemStatus, status>> = {
  400: status.INVALID_ARGUMENT,
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  404: status.NOT_FOUND,
  409: status.FAILED_PRECONDITION,
  // Begin again with a fresh read, as far as the change class lets the caller (W1a).
  412: status.ABORTED,
  413: status.INVALID_ARGUMENT,
  422: status.INVALID_ARGUMENT,
  428: status.FAILED_PRECONDITION,
  429: status.RESOURCE_EXHAUSTED,
  500: status.INTERNAL,
  503: status.UNAVAILABLE,
};

/** A status travels in trailers, escaped or in base64, and stock clients read 8 KiB of those. */
const MAX_TEXT = 256;
const DOMAIN = 'writ';

/**
 * A problem as a rich gRPC status: `google.rpc.ErrorInfo` with the code in upper case and the members in its metadata,
 * and RetryInfo where waiting helps. For what the interceptor refuses, and for handlers.
 *
 * @example
 * callback(grpcStatusOf(problem({ status: 412, code: 'version_conflict', detail: 'Somebody else was faster.' })));
 */
export function grpcStatusOf(of: Problem): GrpcStatus {
  const { status: http, code: reason, detail, retry_after: retryAfter } = of;
  const code = CODES[http];
  const message = cut(detail);
  const details = [
    any(
      'google.rpc.ErrorInfo',
      ErrorInfo.encode({ reason: reason.toUpperCase(), domain: DOMAIN, metadata: facts(of) }).finish(),
    ),
  ];
  if (retryAfter !== undefined)
    details.push(
      any('google.rpc.RetryInfo', RetryInfo.encode({ retryDelay: toDuration(retryAfter * 1_000) }).finish()),
    );
  const metadata = new Metadata();
  metadata.set('grpc-status-details-bin', Buffer.from(Status.encode({ code, message, details }).finish()));
  if (of.request_id !== undefined) metadata.set('x-request-id', of.request_id);
  return { code, details: message, metadata };
}

/** The members that are one value; lists are for HTTP. */
function facts(of: Problem): Record<string, string> {
  const { type: _type, title: _title, status: _status, detail: _detail, code: _code, ...members } = of;
  const single = Object.entries(members).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value));
  return Object.fromEntries(single.map(([name, value]) => [name, cut(String(value))]));
}

function cut(text: string): string {
  return (text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT - 1)}…`).toWellFormed();
}

function any(type: string, value: Uint8Array): { typeUrl: string; value: Buffer } {
  return { typeUrl: `type.googleapis.com/${type}`, value: Buffer.from(value) };
}
