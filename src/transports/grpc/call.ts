import { type Metadata, status } from '@grpc/grpc-js';
import type { Principal } from '../../auth/principal.js';
import type { Method } from '../../auth/roles.js';
import { monotonicMicros, wallClockMicros } from '../../platform/clock.js';
import { type ServerSpan, startServerSpan } from '../../platform/tracing.js';
import type { CallContext } from '../../services/api.js';
import { orDefault } from '../namespace-of.js';
import { requestIdOf, single } from './metadata.js';
import type { Unread } from './unread.js';

/** What the library has of a call of any kind, as far as it is looked at. */
interface Surface {
  readonly metadata: Metadata;
  readonly cancelled: boolean;
  /** Of a call with one request: an Unread of it. */
  readonly request?: unknown;
  getPath(): string;
  getDeadline(): Date | number;
  once(event: 'cancelled', listener: () => void): unknown;
}

/**
 * One call, and what the services see of it. Ends once: by its answer, by a fault, by its caller's
 * going or by the end of the coordinator.
 */
export class Call implements CallContext {
  namespace = '';
  /** As it was read; empty before. */
  request: object = {};
  /** Where the principal's roles were looked at; null: in no namespace. */
  authorizedIn: string | null = null;
  readonly startedAt = monotonicMicros();
  readonly requestId: string;
  readonly span: ServerSpan;
  #principal: Principal | undefined;
  #controller: AbortController | undefined;
  #finished = false;

  constructor(
    readonly method: Method,
    private readonly surface: Surface,
    private readonly onFailure: (error: unknown) => void,
  ) {
    this.requestId = requestIdOf(surface.metadata);
    this.span = startServerSpan(
      surface.getPath().slice(1),
      single(surface.metadata, 'traceparent'),
      single(surface.metadata, 'tracestate'),
    );
  }

  get principal(): Principal {
    if (this.#principal === undefined) throw new Error('the call has not been authenticated');
    return this.#principal;
  }

  set principal(principal: Principal) {
    this.#principal = principal;
  }

  get hasPrincipal(): boolean {
    return this.#principal !== undefined;
  }

  /** Reads the request, once; throws a Fault when its bytes are not what the method takes. */
  read<Request>(): Request {
    this.request = (this.surface.request as Unread<object>).read();
    return this.request as Request;
  }

  /** The same call, about this namespace. */
  within(namespace: string): this {
    if (orDefault(namespace) !== this.authorizedIn) throw new Error('the call is authorised for another namespace');
    this.namespace = namespace;
    return this;
  }

  get deadlineMs(): number | null {
    const deadline = this.surface.getDeadline();
    const at = typeof deadline === 'number' ? deadline : deadline.getTime();
    return Number.isFinite(at) ? Math.max(0, at - wallClockMicros() / 1000) : null;
  }

  /** Made when first asked for: most calls are answered before anybody could go. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      if (this.#finished || this.surface.cancelled) controller.abort();
      else this.surface.once('cancelled', () => this.#finished || controller.abort());
    }
    return this.#controller.signal;
  }

  /** How a caller that no longer listens has gone; null: it is there. */
  get goneAs(): status | null {
    if (!this.surface.cancelled) return null;
    return this.deadlineMs === 0 ? status.DEADLINE_EXCEEDED : status.CANCELLED;
  }

  /** Whether this is the first end of the call. */
  finish(): boolean {
    if (this.#finished) return false;
    this.#finished = true;
    return true;
  }

  /** Ends the call with a fault, and tells whoever still works on it to stop. */
  fail(error: unknown): void {
    if (!this.finish()) return;
    this.#controller?.abort();
    this.onFailure(error);
  }
}
