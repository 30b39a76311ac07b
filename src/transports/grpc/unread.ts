import type { ServiceDefinition } from '@grpc/grpc-js';
import type { Method } from '../../auth/roles.js';
import { Fault } from '../../domain/fault.js';
import type { Limits } from '../../platform/config.js';
import { checkMessage, type MessageBounds, malformed } from './check-message.js';
import type { Contract } from './contract.js';
import { type MessageShape, MessageShapes } from './message-shape.js';

/**
 * Requests stay bytes until their caller is known and may call: grpc-js would decode them before any handler runs, and
 * answer INTERNAL to what cannot be decoded.
 */

/** Names, ids, a page, a text or two. */
const SMALL_BYTES = 64 << 10;
/** Long lists of short things. */
const MEDIUM_BYTES = 1 << 20;

/** Methods that take more than a small message; null: as much as WRIT_MAX_MESSAGE_BYTES. */
const MAX_BYTES: Partial<Record<Method, number | null>> = {
  // 256 writes of 2.4 KiB at most; 1,000 renewals of 400 bytes.
  'FenceService/CheckFence': MEDIUM_BYTES,
  'LeaseService/RenewLeases': MEDIUM_BYTES,
  // Write sets and contracts, with all the actions of every entry.
  'LeaseService/AcquireWriteSet': null,
  'LeaseService/PreviewWriteSet': null,
  'RunService/CreateRun': null,
  // Documents of up to 1 MiB.
  'ConflictMapService/PutConflictMap': null,
  'ConflictMapService/ValidateConflictMap': null,
  'ConflictMapService/PreviewConflictMap': null,
  'ConflictMapService/ExplainConflict': null,
  'ConflictMapService/GetTaskMatrix': null,
};

/** The largest request there is consists of two write sets, with 32 actions in each entry. */
const FIELDS_PER_ENTRY = 100;
const MIN_FIELDS = 25_600;

/** How requests of one method are read. */
interface Form {
  readonly method: string;
  readonly maxBytes: number;
  readonly bounds: MessageBounds;
  readonly shape: MessageShape;
  readonly decode: (bytes: Buffer) => unknown;
}

/** A request as it came. */
export class Unread<Request> {
  #bytes: Buffer | null;
  readonly #form: Form;

  constructor(bytes: Buffer, form: Form) {
    this.#bytes = bytes;
    this.#form = form;
  }

  /** Decodes it, once; throws a Fault that says what is wrong with the bytes. They are let go: a call can last long. */
  read(): Request {
    const { method, maxBytes, bounds, shape, decode } = this.#form;
    const bytes = this.#bytes;
    if (bytes === null) throw new Error('a request is read once');
    this.#bytes = null;
    if (bytes.length > maxBytes) throw tooLarge(method, bytes.length, maxBytes);
    checkMessage(bytes, shape, bounds);
    return decode(bytes) as Request;
  }
}

/** The service as defined, with requests that are still to be read. */
export function unread<Definition extends ServiceDefinition>(
  definition: Definition,
  contract: Contract,
  limits: Limits,
): Definition {
  const shapes = new MessageShapes();
  const bounds = { maxFields: Math.max(MIN_FIELDS, limits.maxEntries * FIELDS_PER_ENTRY), setting: 'WRIT_MAX_ENTRIES' };
  const methods = Object.entries(definition).map(([name, { path, requestDeserialize }]) => {
    const message = contract.requests.get(path);
    if (message === undefined) throw new Error(`the descriptors have no ${path}`);
    const method = path.slice('/writ.v1.'.length);
    const maxBytes = maxBytesOf(method, limits);
    const form: Form = { method, maxBytes, bounds, shape: shapes.of(message), decode: requestDeserialize };
    return [name, { ...definition[name], requestDeserialize: (bytes: Buffer) => new Unread(bytes, form) }];
  });
  return Object.fromEntries(methods) as Definition;
}

function maxBytesOf(method: string, { maxMessageBytes }: Limits): number {
  const own = Object.hasOwn(MAX_BYTES, method) ? MAX_BYTES[method as Method] : SMALL_BYTES;
  return Math.min(own ?? maxMessageBytes, maxMessageBytes);
}

/**
 * The same for services of libraries, which read their requests themselves: what cannot be read becomes the Fault that
 * the gatekeeper answers with.
 */
export function guarded(definition: ServiceDefinition): ServiceDefinition {
  const methods = Object.entries(definition).map(([name, method]) => {
    const requestDeserialize = (bytes: Buffer): unknown => {
      if (bytes.length > SMALL_BYTES) return tooLarge(method.path.slice(1), bytes.length, SMALL_BYTES);
      try {
        return method.requestDeserialize(bytes);
      } catch (error) {
        return malformed(`request of ${method.path.slice(1)}`, (error as Error).message);
      }
    };
    return [name, { ...method, requestDeserialize }];
  });
  return Object.fromEntries(methods);
}

function tooLarge(method: string, bytes: number, maxBytes: number): Fault {
  return new Fault(
    'resource_exhausted',
    'MESSAGE_TOO_LARGE',
    `the request has ${bytes} bytes; ${method} takes at most ${maxBytes}`,
    { metadata: { max_bytes: String(maxBytes) } },
  );
}
