import type { Method } from '../auth/roles.js';
import { Fault, invalidArgument } from '../domain/fault.js';
import type { Limits } from '../platform/config.js';

/** Names, ids, a page, a text or two. */
export const SMALL_BYTES = 64 << 10;
/** Long lists of short things. */
const MEDIUM_BYTES = 1 << 20;

/** Methods that take more than a small message; null: as much as WRIT_MAX_MESSAGE_BYTES. */
const MAX_BYTES: Partial<Record<Method, number | null>> = {
  // 256 writes of 2.4 KiB at most; 1,000 renewals of 400 bytes.
  'FenceService/CheckFence': MEDIUM_BYTES,
  'FenceService/StreamFenceChecks': MEDIUM_BYTES,
  // All headers of somebody else's request, twice.
  'Authorization/Check': MEDIUM_BYTES,
  'FenceService/ReportWrite': MEDIUM_BYTES,
  'LeaseService/RenewLeases': MEDIUM_BYTES,
  // Write sets and contracts, with all the actions of every entry.
  'LeaseService/AcquireWriteSet': null,
  'LeaseService/AmendWriteSet': null,
  'LeaseService/PreviewWriteSet': null,
  'LeaseService/Session': null,
  'LeaseService/TakeOver': null,
  'RunService/CreateRun': null,
  // Documents of up to 1 MiB.
  'ConflictMapService/PutConflictMap': null,
  'ConflictMapService/ValidateConflictMap': null,
  'ConflictMapService/PreviewConflictMap': null,
  'ConflictMapService/ExplainConflict': null,
  'ConflictMapService/GetTaskMatrix': null,
};

/** As many bytes as a request of the method may have. */
export function maxBytesOf(method: string, { maxMessageBytes }: Limits): number {
  const own = Object.hasOwn(MAX_BYTES, method) ? MAX_BYTES[method as Method] : SMALL_BYTES;
  return Math.min(own ?? maxMessageBytes, maxMessageBytes);
}

export function tooLarge(method: string, bytes: number, maxBytes: number): Fault {
  return new Fault(
    'resource_exhausted',
    'MESSAGE_TOO_LARGE',
    `the request has ${bytes} bytes; ${method} takes at most ${maxBytes}`,
    { metadata: { max_bytes: String(maxBytes) } },
  );
}

/** What a request may consist of. */
export interface MessageBounds {
  /** Fields, wherever they are: each element of a list, each packed number and each unknown field counts. */
  readonly maxFields: number;
  /** The setting by which it can be raised. */
  readonly setting: string;
}

/** The largest request there is consists of two write sets, with 32 actions in each entry. */
const FIELDS_PER_ENTRY = 100;
const MIN_FIELDS = 25_600;

export function boundsOf({ maxEntries }: Limits): MessageBounds {
  return { maxFields: Math.max(MIN_FIELDS, maxEntries * FIELDS_PER_ENTRY), setting: 'WRIT_MAX_ENTRIES' };
}

/** Of the field that is one more than there may be. */
export function tooManyFields(field: string, { maxFields, setting }: MessageBounds): Fault {
  const description = `a request may have at most ${maxFields} fields, elements of lists included (${setting} raises it); this is one more`;
  return invalidArgument([{ field, description }]);
}
