import {
  type Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  ServerListenerBuilder,
} from '@grpc/grpc-js';
import { findRoute } from '../../route-table/index.js';
import type { Gate } from './gate.js';
import type { GateCaller, GateDecision } from './gate-decision.js';
import { grpcStatusOf } from './gate-grpc-status.js';
import { remember } from './gate-let-in.js';
import { thumbprintOf } from './gate-tls.js';
import { problem } from './problem.js';

/** What of a call a gRPC gate cannot know by itself. */
export interface GrpcGateOptions {
  /** Who calls, as the service finds out by the call's metadata or session. */
  readonly caller?: (metadata: Metadata, call: ServerInterceptingCallInterface) => GateCaller | Promise<GateCaller>;
  /** Hears of errors of the gate itself; the call is refused as INTERNAL. */
  readonly onProblem?: (error: unknown) => void;
}

/**
 * The gate as an interceptor for servers of grpc-js. A method is a route with `method: POST` and the path
 * `/package.Service/Method`; resources come from the request by the route's `fields`. Runs present in metadata what they
 * present over HTTP in headers, `if-match` included. Each message of a request stream is decided for itself, before the
 * handler sees it. The handler finds what was let in by `writesOf(call.metadata)`, or by `writesOf(message)`.
 *
 * @example
 * const server = new Server({ interceptors: [grpcGate(gate)] });
 */
export function grpcGate(gate: Gate, options: GrpcGateOptions = {}): ServerInterceptor {
  return (method, call) => {
    const gated = new GatedCall(gate, options, method.path, call);
    const listener = new ServerListenerBuilder()
      .withOnReceiveMetadata((metadata, next) => gated.receiveMetadata(metadata, () => next(metadata)))
      .withOnReceiveMessage((message, next) => gated.receiveMessage(message, () => next(message)))
      .withOnReceiveHalfClose((next) => gated.receiveHalfClose(next))
      .withOnCancel(() => gated.gone.abort(new Error('the caller has gone')))
      .build();
    return new ServerInterceptingCall(call, new ResponderBuilder().withStart((next) => next(listener)).build());
  };
}

/** One call on its way to its handler. */
class GatedCall {
  readonly gone = new AbortController();
  private metadata: Metadata | undefined;
  /** The method's route has writes, which are decided message by message. */
  private writes = false;
  private decided = false;
  private refused = false;

  constructor(
    private readonly gate: Gate,
    private readonly options: GrpcGateOptions,
    private readonly path: string,
    private readonly call: ServerInterceptingCallInterface,
  ) {}

  /** What writes waits for its message, which may name the resources; all else is decided here. */
  receiveMetadata(metadata: Metadata, next: () => void): void {
    this.metadata = metadata;
    const found = findRoute(this.gate.routes, { method: 'POST', path: this.path, host: this.call.getHost() });
    this.writes = found.kind === 'route' && found.route?.kind === 'writes';
    if (this.writes) next();
    else this.decide(undefined, next);
  }

  receiveMessage(message: unknown, next: () => void): void {
    if (this.refused) return;
    if (this.writes) this.decide(message, next);
    else next();
  }

  /** A call that ends without any message is not let in unseen. */
  receiveHalfClose(next: () => void): void {
    if (this.refused) return;
    if (this.decided) next();
    else this.decide(undefined, next);
  }

  private decide(message: unknown, next: () => void): void {
    this.decided = true;
    this.ask(message).then(
      (decision) => {
        if (!decision.allowed) {
          this.refuse(decision);
          return;
        }
        if (this.metadata !== undefined) remember(this.metadata, decision);
        if (typeof message === 'object' && message !== null) remember(message, decision);
        next();
      },
      (error: unknown) => {
        this.options.onProblem?.(error);
        const detail = 'The gate of this service failed, so nothing is written.';
        this.send(grpcStatusOf(problem({ status: 500, code: 'internal', detail })));
      },
    );
  }

  private async ask(message: unknown): Promise<GateDecision> {
    const { metadata, call } = this;
    if (metadata === undefined) throw new Error('a message came before the metadata');
    const caller = await this.options.caller?.(metadata, call);
    const certificate = call.getAuthContext().sslPeerCertificate?.raw;
    return this.gate.decide({
      method: 'POST',
      path: this.path,
      host: call.getHost(),
      headers: { get: (name) => metadata.get(name).join(', ') || null },
      ...(message === undefined ? {} : { field: (path) => fieldOf(message, path) }),
      caller: {
        ...(certificate === undefined ? {} : { certificateThumbprint: thumbprintOf(certificate) }),
        ...caller,
      },
      signal: this.gone.signal,
    });
  }

  private refuse({ problem: refusal, headers }: Extract<GateDecision, { allowed: false }>): void {
    const status = grpcStatusOf(refusal);
    for (const [name, value] of Object.entries(headers)) status.metadata.set(name, value);
    this.send(status);
  }

  private send(status: ReturnType<typeof grpcStatusOf>): void {
    this.refused = true;
    this.call.sendStatus(status);
  }
}

/** The value at a dotted path, named as in the contract or as generated code names it; undefined: no text or number. */
function fieldOf(message: unknown, path: string): string | undefined {
  let at: unknown = message;
  for (const name of path.split('.')) {
    if (typeof at !== 'object' || at === null) return undefined;
    const own = Object.hasOwn(at, name)
      ? name
      : name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    at = Object.hasOwn(at, own) ? (at as Record<string, unknown>)[own] : undefined;
  }
  return typeof at === 'string' || typeof at === 'number' || typeof at === 'bigint' ? String(at) : undefined;
}
