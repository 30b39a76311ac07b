import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  type Metadata,
  type ServerUnaryCall,
  type ServerWritableStream,
  status,
} from '@grpc/grpc-js';
import type { Authenticator } from '../../auth/authenticator.js';
import type { Principal } from '../../auth/principal.js';
import { authorize, type Method } from '../../auth/roles.js';
import { Fault } from '../../domain/fault.js';
import { monotonicMicros, wallClockMicros } from '../../platform/clock.js';
import { type Logger, shortLeaseId } from '../../platform/log.js';
import type { Metrics } from '../../platform/metrics.js';
import { type ServerSpan, startServerSpan } from '../../platform/tracing.js';
import type { CallContext, WritApi } from '../../services/api.js';
import type { RateLimiter } from '../rate-limit.js';
import { authorizationOf, requestIdOf, single } from './metadata.js';
import { namespaceOf, orDefault } from './namespace-of.js';
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

/** One RPC: convert the request, call the service, convert the answer. */
export type UnaryWork<Request, Response> = (api: WritApi, call: Call, request: Request) => Promise<Response>;

/** The same for an RPC that answers in parts. */
export type StreamWork<Request, Response> = (api: WritApi, call: Call, request: Request) => AsyncIterable<Response>;

// What a caller can cause in a loop must not fill the disk. Errors have a share of their own.
const MAX_LOG_LINES_PER_SECOND = 200;
const MAX_ERROR_LINES_PER_SECOND = 50;

/** Calls that change what others meet and that people make: each is worth a line in the log. */
const NOTABLE: ReadonlySet<string> = new Set<Method>([
  'LeaseService/RevokeLease',
  'RunService/StopRun',
  'RunService/StopRuns',
  'CredentialService/RevokeCredential',
  'CredentialService/RotateSigningKey',
  'CredentialService/RetireSigningKey',
  'ConflictMapService/PutConflictMap',
  'NamespaceService/CreateNamespace',
  'AuditService/ExportEvents',
]);

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
  /** Who made the call with this metadata, as the gatekeeper found; kept apart, since what is in metadata callers write. */
  readonly #callers = new WeakMap<Metadata, Principal>();
  readonly #lines = new LineBudget(MAX_LOG_LINES_PER_SECOND);
  readonly #errorLines = new LineBudget(MAX_ERROR_LINES_PER_SECOND);

  constructor(options: HandlerOptions) {
    this.#options = options;
    options.metrics.rpcsInFlight(() => this.#active.size);
  }

  /** A handler for an RPC with one answer. What it is called with is an Unread of the request. */
  unary<Request, Response>(method: Method, work: UnaryWork<Request, Response>): handleUnaryCall<Request, Response> {
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
    work: StreamWork<Request, Response>,
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

  /** Finds out who calls, once per call; the gatekeeper asks before the message is read. */
  authenticate(metadata: Metadata, certificate: Uint8Array | undefined): void | Promise<void> {
    const { authenticator } = this.#options.serving();
    const found = authenticator.authenticate(authorizationOf(metadata), certificate);
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

  /** Only of a caller who may call the method somewhere, and not too often, is the request read at all. */
  #admit<Request>(call: Call, metadata: Metadata): { api: WritApi; request: Request } {
    const { api } = this.#options.serving();
    const caller = this.callerOf(metadata);
    call.principal = caller;
    authorize(caller, call.method, null);
    this.#options.rateLimiter.take(caller.name);
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

/** So many lines a second; counts what was left out. */
class LineBudget {
  readonly #perSecond: number;
  #second = 0;
  #used = 0;
  #suppressed = 0;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  take(): boolean {
    const second = Math.floor(monotonicMicros() / 1e6);
    if (second !== this.#second) {
      this.#second = second;
      this.#used = 0;
    }
    if (this.#used < this.#perSecond) {
      this.#used += 1;
      return true;
    }
    this.#suppressed += 1;
    return false;
  }

  /** What was left out before this line. */
  suppressed(): { suppressed_lines?: number } {
    if (this.#suppressed === 0) return {};
    const count = this.#suppressed;
    this.#suppressed = 0;
    return { suppressed_lines: count };
  }
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
    private readonly surface: ServerUnaryCall<unknown, unknown> | ServerWritableStream<unknown, unknown>,
    private readonly onFailure: (error: unknown) => void,
  ) {
    this.requestId = requestIdOf(surface.metadata);
    this.span = startServerSpan(
      `writ.v1.${method}`,
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

/** Run and lease of a request, as far as it names them; of a lease id only the part that may be logged. */
function idsOf(request: object): Record<string, string> {
  const { namespace, runId, leaseId } = request as { namespace?: unknown; runId?: unknown; leaseId?: unknown };
  const named = (value: unknown): value is string => typeof value === 'string' && value !== '';
  return {
    ...(named(namespace) ? { namespace: namespace.slice(0, 64) } : {}),
    ...(named(runId) ? { run_id: runId.slice(0, 64) } : {}),
    ...(named(leaseId) ? { lease_id: shortLeaseId(leaseId) } : {}),
  };
}
