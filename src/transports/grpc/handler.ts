import {
  type handleBidiStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type Metadata,
  type ServerDuplexStream,
  type ServerWritableStream,
  status,
} from '@grpc/grpc-js';
import type { Authenticator } from '../../auth/authenticator.js';
import type { Principal } from '../../auth/principal.js';
import { authorize, type Method } from '../../auth/roles.js';
import { Fault } from '../../domain/fault.js';
import { monotonicMicros } from '../../platform/clock.js';
import { LineBudget } from '../../platform/line-budget.js';
import type { Logger } from '../../platform/log.js';
import type { Metrics } from '../../platform/metrics.js';
import type { WritApi } from '../../services/api.js';
import { idsOf, NOTABLE } from '../call-log.js';
import type { Parts, Unary } from '../methods/method.js';
import { namespaceOf } from '../namespace-of.js';
import type { RateLimiter } from '../rate-limit.js';
import { Call } from './call.js';
import { Conversation, type Talk } from './conversation.js';
import { authorizationOf } from './metadata.js';
import { toWireStatus, type WireStatus } from './status.js';
import type { Unread } from './unread.js';

/** What there is once the coordinator has started. */
export interface Serving {
  readonly api: WritApi;
  readonly authenticator: Authenticator;
}

/** What every call goes through, apart from its own conversion. */
export interface HandlerOptions {
  /** Throws a Fault `unavailable` before the coordinator has started. */
  readonly serving: () => Serving;
  readonly rateLimiter: RateLimiter;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Handlers of all of a service's RPCs that have one answer. */
type Unaries<Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends Unary<infer Request, infer Response>
    ? handleUnaryCall<Request, Response>
    : never;
};

// What a caller can cause in a loop must not fill the disk. Errors have a share of their own.
const MAX_LOG_LINES_PER_SECOND = 200;
const MAX_ERROR_LINES_PER_SECOND = 50;

/** Codes that are the coordinator's trouble rather than the caller's. */
const OUR_TROUBLE: ReadonlySet<status> = new Set([status.INTERNAL, status.UNKNOWN, status.DATA_LOSS]);

/**
 * Makes handlers: authenticate, authorise, limit, read the request, run with deadline, cancellation, span and request
 * id, then count, log and answer. One allocation per call carries all of it, as fence checks come by the
 * thousand; what costs more (an AbortController) is made when somebody asks for it.
 */
export class CallHandler {
  readonly #options: HandlerOptions;
  readonly #active = new Set<Call>();
  readonly #conversations = new Set<{ goAway(): void }>();
  /** Who made the call with this metadata, as the gatekeeper found; kept apart, since what is in metadata callers write. */
  readonly #callers = new WeakMap<Metadata, Principal>();
  readonly #lines = new LineBudget(MAX_LOG_LINES_PER_SECOND);
  readonly #errorLines = new LineBudget(MAX_ERROR_LINES_PER_SECOND);

  constructor(options: HandlerOptions) {
    this.#options = options;
    options.metrics.rpcsInFlight(() => this.#active.size);
  }

  /** Handlers for the methods of a service. */
  unaries<Methods extends Readonly<Record<string, Unary<never, unknown>>>>(
    service: string,
    methods: Methods,
  ): Unaries<Methods> {
    const handlers = Object.entries(methods).map(([name, work]) => {
      const method = `${service}/${name.charAt(0).toUpperCase()}${name.slice(1)}` as Method;
      return [name, this.unary(method, work)];
    });
    return Object.fromEntries(handlers) as Unaries<Methods>;
  }

  /** A handler for an RPC with one answer. What it is called with is an Unread of the request. */
  unary<Request, Response>(method: Method, work: Unary<Request, Response>): handleUnaryCall<Request, Response> {
    return (surface, callback) => {
      const call = new Call(method, surface, (failure) => this.#failed(call, failure, callback));
      const succeed = (response: Response): void => {
        if (call.finish() && this.#succeeded(call)) callback(null, response);
      };
      const fail = (error: unknown): void => call.fail(error);
      this.#active.add(call);
      try {
        const { api, request } = this.#admit<Request>(call, surface.metadata);
        call.span.run(() => work(api, call, request)).then(succeed, fail);
      } catch (error) {
        fail(error);
      }
    };
  }

  /** A handler for an RPC that streams its answer; waits whenever the caller does not keep up. */
  stream<Request, Response>(
    method: Method,
    work: Parts<Request, Response>,
  ): handleServerStreamingCall<Request, Response> {
    return (surface) => {
      const call = new Call(method, surface, (failure) => {
        this.#failed(call, failure, (error) => surface.emit('error', error));
      });
      this.#active.add(call);
      try {
        const { api, request } = this.#admit<Request>(call, surface.metadata);
        const parts = call.span.run(() => work(api, call, request));
        pump(parts, surface, call).then(
          () => {
            if (call.finish() && this.#succeeded(call)) surface.end();
          },
          (error: unknown) => call.fail(error),
        );
      } catch (error) {
        call.fail(error);
      }
    };
  }

  /** A handler for an RPC that is talked on in both directions. What it reads is an Unread of each message. */
  duplex<Request, Item, Response>(
    method: Method,
    talk: (api: WritApi, rateLimiter: RateLimiter) => Talk<Request, Item, Response>,
  ): handleBidiStreamingCall<Request, Response> {
    return (surface) => {
      let conversation: Conversation<Request, Item> | undefined;
      const over = (): void => {
        if (conversation === undefined) return;
        this.#conversations.delete(conversation);
        conversation.close();
      };
      const call = new Call(method, surface, (failure) => {
        over();
        this.#failed(call, failure, (error) => surface.emit('error', error));
      });
      this.#active.add(call);
      try {
        const api = this.#let(call, surface.metadata);
        const { metadata } = surface;
        const certificate = surface.getAuthContext().sslPeerCertificate?.raw;
        conversation = new Conversation(talk(api, this.#options.rateLimiter) as Talk<Request, Item, unknown>, {
          call,
          surface: surface as unknown as ServerDuplexStream<Unread<Request>, unknown>,
          identify: () => this.#identify(metadata, certificate),
          report: (error) => this.#report(call, error),
          done: () => {
            over();
            if (call.finish() && this.#succeeded(call)) surface.end();
          },
        });
        this.#conversations.add(conversation);
      } catch (error) {
        call.fail(error);
      }
    };
  }

  /** Tells those who talk on streams to move on to another replica; what they have asked is answered (F26). */
  goAway(): void {
    for (const conversation of this.#conversations) conversation.goAway();
  }

  /** Finds out who calls, once per call; the gatekeeper asks before the message is read. */
  authenticate(metadata: Metadata, certificate: Uint8Array | undefined): void | Promise<void> {
    const found = this.#identify(metadata, certificate);
    if (found instanceof Promise) return found.then((principal) => void this.#callers.set(metadata, principal));
    this.#callers.set(metadata, found);
  }

  /** Who makes the call, as the gatekeeper found. */
  callerOf(metadata: Metadata): Principal {
    const principal = this.#callers.get(metadata);
    if (principal === undefined) throw new Error('the call did not pass the gatekeeper');
    return principal;
  }

  /** Ends every call that is still going on with this fault. */
  cutOff(fault: Fault): number {
    const cut = [...this.#active];
    for (const call of cut) call.fail(fault);
    return cut.length;
  }

  #identify(metadata: Metadata, certificate: Uint8Array | undefined): Principal | Promise<Principal> {
    return this.#options.serving().authenticator.authenticate(authorizationOf(metadata), certificate);
  }

  /** Only a caller who may call the method somewhere, and not too often, is listened to at all. */
  #let(call: Call, metadata: Metadata): WritApi {
    const { api } = this.#options.serving();
    const caller = this.callerOf(metadata);
    call.principal = caller;
    authorize(caller, call.method, null);
    this.#options.rateLimiter.take(caller.name);
    return api;
  }

  /** The request is read only then. */
  #admit<Request>(call: Call, metadata: Metadata): { api: WritApi; request: Request } {
    const api = this.#let(call, metadata);
    const caller = call.principal;
    const request = call.read<Request>();
    const namespace = namespaceOf(call.method, request);
    call.principal = authorize(caller, call.method, namespace);
    call.authorizedIn = namespace;
    return { api, request };
  }

  /** Whether there is still somebody to answer. */
  #succeeded(call: Call): boolean {
    this.#ended(call, call.goneAs ?? status.OK, null, undefined);
    return call.goneAs === null;
  }

  #failed(call: Call, error: unknown, answer: (wire: WireStatus) => void): void {
    const { goneAs } = call;
    const wire = goneAs === null ? toWireStatus(error, call.requestId) : null;
    this.#ended(call, wire?.code ?? goneAs ?? status.CANCELLED, wire, error);
    if (wire !== null) answer(wire);
  }

  /** A stream goes on after one answer that tells of the coordinator's own trouble; its cause is for the log. */
  #report(call: Call, error: unknown): void {
    const { code, reason, details } = toWireStatus(error, call.requestId);
    if (!OUR_TROUBLE.has(code) || !this.#errorLines.take()) return;
    const line = { method: call.method, code: status[code], reason, detail: details, request_id: call.requestId };
    this.#options.log.error({ ...line, ...this.#errorLines.suppressed(), err: error }, 'rpc');
  }

  /** Counts and logs; reached once per call. */
  #ended(call: Call, code: status, wire: WireStatus | null, error: unknown): void {
    this.#active.delete(call);
    const micros = monotonicMicros() - call.startedAt;
    this.#options.metrics.rpcEnded(call.method, status[code], micros);
    const attributes = {
      'rpc.system': 'grpc',
      'rpc.method': call.method,
      'rpc.grpc.status_code': code,
      'writ.request_id': call.requestId,
    };
    call.span.end(attributes, OUR_TROUBLE.has(code) || code === status.UNAVAILABLE);
    const level = levelOf(call.method, code);
    const { log } = this.#options;
    const budget = level === 'error' ? this.#errorLines : this.#lines;
    if (!log.isLevelEnabled(level) || !budget.take()) return;
    const line = {
      method: call.method,
      code: status[code],
      ...(wire === null ? {} : { reason: wire.reason, detail: error instanceof Fault ? error.message : wire.details }),
      request_id: call.requestId,
      ...(call.hasPrincipal ? { principal: call.principal.name } : {}),
      ...(call.span.traceId === '' ? {} : { trace_id: call.span.traceId }),
      ...idsOf(call.request),
      duration_ms: micros / 1000,
      ...budget.suppressed(),
    };
    log[level](level === 'error' ? { ...line, err: error } : line, 'rpc');
  }
}

/** Writes the parts, no faster than the caller reads them. */
async function pump<T>(parts: AsyncIterable<T>, surface: ServerWritableStream<unknown, T>, call: Call): Promise<void> {
  const { signal } = call;
  for await (const part of parts) {
    if (signal.aborted) return;
    if (!surface.write(part)) await drained(surface, signal);
  }
}

function drained(surface: ServerWritableStream<unknown, unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      surface.off('drain', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    surface.once('drain', done);
    signal.addEventListener('abort', done, { once: true });
  });
}

function levelOf(method: Method, code: status): 'debug' | 'info' | 'error' {
  if (OUR_TROUBLE.has(code)) return 'error';
  if (code === status.OK) return NOTABLE.has(method) ? 'info' : 'debug';
  return code === status.CANCELLED || code === status.DEADLINE_EXCEEDED ? 'debug' : 'info';
}
