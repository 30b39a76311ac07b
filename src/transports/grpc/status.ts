import { Metadata, status } from '@grpc/grpc-js';
import { Fault, type FaultClass, type Violation } from '../../domain/fault.js';
import { BadRequest, ErrorInfo, RetryInfo } from '../../gen/google/rpc/error_details.js';
import { Status } from '../../gen/google/rpc/status.js';
import type { Fault as WireFault } from '../../gen/writ/v1/types.js';
import { toDuration } from '../messages/convert.js';
import { RETRY_AFTER_MS } from '../rate-limit.js';

/** A fault as gRPC sends it, and what the log says about it. */
export interface WireStatus {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
  readonly reason: string;
}

const DOMAIN = 'writ';

const CODE_BY_CLASS: Readonly<Record<FaultClass, status>> = {
  invalid_argument: status.INVALID_ARGUMENT,
  not_found: status.NOT_FOUND,
  already_exists: status.ALREADY_EXISTS,
  permission_denied: status.PERMISSION_DENIED,
  unauthenticated: status.UNAUTHENTICATED,
  failed_precondition: status.FAILED_PRECONDITION,
  aborted: status.ABORTED,
  resource_exhausted: status.RESOURCE_EXHAUSTED,
  unavailable: status.UNAVAILABLE,
  // Stock clients retry UNAVAILABLE, and with the same idempotency key that is the right thing to do.
  unknown_outcome: status.UNAVAILABLE,
  internal: status.INTERNAL,
};

/** How long to wait before the next try, where the fault itself does not say. */
const DEFAULT_RETRY_MS: Partial<Record<FaultClass, number>> = { unavailable: 1000, unknown_outcome: 200 };

// A status travels in HTTP/2 trailers, and stock clients of other languages stop reading at 8 KiB:
// text counts as it is sent, escaped, and the details in base64 on top.
const MAX_MESSAGE_SENT_CHARS = 1500;
const MAX_DETAILS_BYTES = 3600;
const MAX_METADATA_VALUE_CHARS = 256;

/**
 * The gRPC status of whatever a call threw: `google.rpc.Status` with ErrorInfo, BadRequest for bad
 * fields and RetryInfo where trying again helps. Of anything but a Fault nothing is told but the
 * request id.
 */
export function toWireStatus(error: unknown, requestId: string): WireStatus {
  const { reason, ...status } = toStatus(error, requestId);
  const metadata = new Metadata();
  metadata.set('x-request-id', requestId);
  metadata.set('grpc-status-details-bin', Buffer.from(Status.encode(status).finish()));
  return { code: status.code, details: status.message, metadata, reason };
}

/** The same for one message of a stream that goes on: what a call of its own would have ended with. */
export function toWireFault(error: unknown, requestId: string): WireFault {
  const { code, message, details } = toStatus(error, requestId);
  return { code, message, details };
}

function toStatus(error: unknown, requestId: string): Status & { readonly reason: string } {
  const fault = error instanceof Fault ? error : null;
  const faultClass = fault?.faultClass ?? 'internal';
  const code = CODE_BY_CLASS[faultClass];
  const reason = reasonOf(fault);
  const message =
    fault === null || faultClass === 'internal'
      ? `internal error; the coordinator's log has the cause under request id ${requestId}`
      : cutToFit(fault.message, MAX_MESSAGE_SENT_CHARS);
  return { code, message, details: detailsOf({ message, reason, requestId, fault, faultClass }), reason };
}

function reasonOf(fault: Fault | null): string {
  if (fault === null) return 'INTERNAL';
  return fault.faultClass === 'unknown_outcome' ? 'UNKNOWN_OUTCOME' : fault.reason;
}

interface Parts {
  readonly message: string;
  readonly reason: string;
  readonly requestId: string;
  readonly fault: Fault | null;
  readonly faultClass: FaultClass;
}

function detailsOf({ message, reason, requestId, fault, faultClass }: Parts): Status['details'] {
  const facts: Record<string, string> = { request_id: requestId };
  // What an internal fault knows is for the log alone.
  const told = faultClass === 'internal' ? {} : (fault?.details.metadata ?? {});
  for (const [key, value] of Object.entries(told)) facts[key] = value.slice(0, MAX_METADATA_VALUE_CHARS);
  const details = [any('google.rpc.ErrorInfo', ErrorInfo.encode({ reason, domain: DOMAIN, metadata: facts }).finish())];
  const retryMs = retryAfterMs(fault, faultClass);
  if (retryMs !== undefined) {
    details.push(any('google.rpc.RetryInfo', RetryInfo.encode({ retryDelay: toDuration(retryMs * 1000) }).finish()));
  }
  const violations = fault?.details.violations ?? [];
  if (violations.length > 0) {
    const used = Buffer.byteLength(message) + details.reduce((sum, detail) => sum + detail.value.length, 0);
    const fieldViolations = fitViolations(violations, MAX_DETAILS_BYTES - used);
    details.push(any('google.rpc.BadRequest', BadRequest.encode({ fieldViolations }).finish()));
  }
  return details;
}

function any(type: string, value: Uint8Array): { typeUrl: string; value: Buffer } {
  return { typeUrl: `type.googleapis.com/${type}`, value: Buffer.from(value) };
}

function retryAfterMs(fault: Fault | null, faultClass: FaultClass): number | undefined {
  const said = Number(fault?.details.metadata?.[RETRY_AFTER_MS] ?? Number.NaN);
  return Number.isSafeInteger(said) && said >= 0 ? said : DEFAULT_RETRY_MS[faultClass];
}

type FieldViolation = BadRequest['fieldViolations'][number];

/** As many as fit; the last one says that there are more. */
function fitViolations(violations: readonly Violation[], bytes: number): FieldViolation[] {
  const fitting: FieldViolation[] = [];
  let left = bytes;
  for (const { field, description } of violations) {
    const text = cutToFit(description, 600);
    left -= Buffer.byteLength(field) + Buffer.byteLength(text) + 12;
    if (left < 100 && fitting.length > 0) {
      fitting.push(fieldViolation('', 'and more'));
      break;
    }
    fitting.push(fieldViolation(field, text));
  }
  return fitting;
}

function fieldViolation(field: string, description: string): FieldViolation {
  return { field, description, reason: '', localizedMessage: undefined };
}

/** The text, cut where it would be longer than this once it is percent-encoded; a lone surrogate is replaced. */
function cutToFit(text: string, maxSentChars: number): string {
  // encodeURI refuses lone surrogates, which a message cut in the middle may end in.
  const whole = text.slice(0, maxSentChars).replace(/\p{Surrogate}/gu, '\uFFFD');
  if (whole.length === text.length && encodeURI(whole).length <= maxSentChars) return whole;
  let sent = 0;
  let cut = '';
  for (const character of whole) {
    sent += encodeURI(character).length;
    if (sent > maxSentChars - 10) break;
    cut += character;
  }
  return `${cut}…`;
}
