import { type ServiceError, status } from '@grpc/grpc-js';
import { BadRequest, ErrorInfo, RetryInfo } from '../../gen/google/rpc/error_details.js';
import { Status } from '../../gen/google/rpc/status.js';
import type { Fault } from '../../gen/writ/v1/types.js';
import { durationMs } from './time.js';

/** The name of a gRPC status, such as `NOT_FOUND`. */
export type WritCode = keyof typeof status;

/** What is wrong with one field of a request. */
export interface WritViolation {
  /** Path of the field as the API names it, such as `entries[0].resource`. */
  readonly field: string;
  /** In words, for a person; `reason` of the WritError is for programs. */
  readonly description: string;
}

/**
 * A call that was not answered as asked: bad input, an unknown id, a missing right, a coordinator out of reach. Expected
 * negative outcomes (refusals, denials) are answers, not errors.
 *
 * @example
 * try {
 *   await writ.run.getRun({ runId });
 * } catch (error) {
 *   if (error instanceof WritError && error.code === 'NOT_FOUND') return null;
 *   throw error;
 * }
 */
export class WritError extends Error {
  override readonly name = 'WritError';
  readonly code: WritCode;
  /** Stable code in upper case, such as `RUN_NOT_FOUND`; empty when the coordinator did not say. */
  readonly reason: string;
  /** What is wrong with the fields of the request. */
  readonly violations: readonly WritViolation[];
  /** Facts that a machine can act on. */
  readonly metadata: Readonly<Record<string, string>>;
  /** True: the same call, with the same idempotency key, can succeed later without anybody changing anything. */
  readonly retryable: boolean;
  /** How long the coordinator asks to wait before that. */
  readonly retryAfterMs: number | undefined;
  /** Finds the call in the coordinator's logs. */
  readonly requestId: string;

  constructor(
    code: WritCode,
    message: string,
    more: Partial<
      Pick<WritError, 'reason' | 'violations' | 'metadata' | 'retryable' | 'retryAfterMs' | 'requestId'>
    > = {},
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.reason = more.reason ?? '';
    this.violations = more.violations ?? [];
    this.metadata = more.metadata ?? {};
    this.retryable = more.retryable ?? false;
    this.retryAfterMs = more.retryAfterMs;
    this.requestId = more.requestId ?? '';
  }

  /** What is wrong with one field of what the caller gave. */
  static wrong(field: string, description: string): WritError {
    return new WritError('INVALID_ARGUMENT', `${field}: ${description}`, { violations: [{ field, description }] });
  }

  /** What one message of a stream was answered in place of what it asked for. */
  static fromFault({ code, message, details }: Fault): WritError {
    const name = (status[code] ?? 'UNKNOWN') as WritCode;
    const known = unpack(details);
    const retryable = name === 'UNAVAILABLE' || known.retryAfterMs !== undefined;
    return new WritError(name, message, { ...known, requestId: known.metadata.request_id ?? '', retryable });
  }

  /** What grpc-js threw, with the details that the coordinator at `endpoint` sent along. */
  static from(error: unknown, requestId: string, endpoint: string): WritError {
    if (error instanceof WritError) return error;
    if (!isServiceError(error)) return new WritError('UNKNOWN', messageOf(error), { requestId }, error);
    const details = decodeDetails(error);
    const code = (status[error.code] ?? 'UNKNOWN') as WritCode;
    return new WritError(
      code,
      details.reason === '' ? inWords(code, error.details, endpoint) : error.details,
      { ...details, requestId, retryable: code === 'UNAVAILABLE' || details.retryAfterMs !== undefined },
      error,
    );
  }
}

type Details = Pick<WritError, 'reason' | 'violations' | 'metadata' | 'retryAfterMs'>;

function decodeDetails(error: ServiceError): Details {
  const [bytes] = error.metadata?.get('grpc-status-details-bin') ?? [];
  if (!(bytes instanceof Uint8Array)) return NO_DETAILS;
  try {
    return unpack(Status.decode(bytes).details);
  } catch {
    // Somebody else's details, from a proxy in between: the status itself still counts.
    return NO_DETAILS;
  }
}

const NO_DETAILS: Details = { reason: '', violations: [], metadata: {}, retryAfterMs: undefined };

function unpack(details: Status['details']): Details {
  const parts = details.map(({ typeUrl, value }) => decodeDetail(typeUrl, value));
  return Object.assign({}, NO_DETAILS, ...parts) as Details;
}

function decodeDetail(typeUrl: string, value: Uint8Array): Partial<Details> {
  switch (typeUrl.slice(typeUrl.lastIndexOf('/') + 1)) {
    case 'google.rpc.ErrorInfo': {
      const { reason, metadata } = ErrorInfo.decode(value);
      return { reason, metadata };
    }
    case 'google.rpc.BadRequest':
      return {
        violations: BadRequest.decode(value).fieldViolations.map(({ field, description }) => ({ field, description })),
      };
    case 'google.rpc.RetryInfo':
      return { retryAfterMs: durationMs(RetryInfo.decode(value).retryDelay) };
    default:
      return {};
  }
}

/** What grpc-js itself says when no coordinator has answered, without its inner life and with whom it tried. */
function inWords(code: WritCode, details: string, endpoint: string): string {
  const [, why] =
    /^No connection established\. Last error: (?:Error: )?(.*?)\.? *Resolution note: *$/s.exec(details) ?? [];
  if (why !== undefined)
    return `the coordinator at ${endpoint} cannot be reached: ${why === '' ? 'no connection' : onOneLine(why)}`;
  if (code === 'DEADLINE_EXCEEDED') return `no answer from ${endpoint} in time: ${details}`;
  return details;
}

/** OpenSSL's own form ends with a line feed. */
function onOneLine(text: string): string {
  return text.trim().replace(/\s+/g, ' ');
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && typeof (error as Partial<ServiceError>).code === 'number';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
