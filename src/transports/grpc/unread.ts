import type { ServiceDefinition } from '@grpc/grpc-js';
import type { Limits } from '../../platform/config.js';
import { boundsOf, type MessageBounds, maxBytesOf, SMALL_BYTES, tooLarge } from '../message-size.js';
import { checkMessage, malformed } from './check-message.js';
import type { Contract } from './contract.js';
import { type MessageShape, MessageShapes } from './message-shape.js';

/**
 * Requests stay bytes until their caller is known and may call: grpc-js would decode them before any handler runs, and
 * answer INTERNAL to what cannot be decoded.
 */

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
  const bounds = boundsOf(limits);
  const methods = Object.entries(definition).map(([name, { path, requestDeserialize }]) => {
    const message = contract.requests.get(path);
    if (message === undefined) throw new Error(`the descriptors have no ${path}`);
    const method = path.slice(path.lastIndexOf('.') + 1);
    const maxBytes = maxBytesOf(method, limits);
    const form: Form = { method, maxBytes, bounds, shape: shapes.of(message), decode: requestDeserialize };
    return [name, { ...definition[name], requestDeserialize: (bytes: Buffer) => new Unread(bytes, form) }];
  });
  return Object.fromEntries(methods) as Definition;
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
