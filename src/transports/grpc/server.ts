import {
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerOptions,
  type ServerWritableStream,
  type ServiceDefinition,
  setLogger,
  status,
  type UntypedHandleCall,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { ReflectionService } from '@grpc/reflection';
import { HealthImplementation } from 'grpc-health-check';
import { Fault } from '../../domain/fault.js';
import { AuthorizationService } from '../../gen/envoy/service/auth/v3/external_auth.js';
import { AuditServiceService } from '../../gen/writ/v1/audit_service.js';
import { ConflictMapServiceService } from '../../gen/writ/v1/conflict_map_service.js';
import { CredentialServiceService } from '../../gen/writ/v1/credential_service.js';
import { FenceServiceService } from '../../gen/writ/v1/fence_service.js';
import { LeaseServiceService } from '../../gen/writ/v1/lease_service.js';
import { NamespaceServiceService } from '../../gen/writ/v1/namespace_service.js';
import { RunServiceService } from '../../gen/writ/v1/run_service.js';
import type { Limits } from '../../platform/config.js';
import { cannotListen, endsWithin } from '../../platform/lifecycle.js';
import type { Logger } from '../../platform/log.js';
import type { Metrics } from '../../platform/metrics.js';
import type { ServerTls } from '../../platform/server-tls.js';
import { type BlockerNamer, createBlockerNamer, RefusalViews } from '../messages/views.js';
import { exportEvents } from '../methods/audit-methods.js';
import { createMethods } from '../methods/index.js';
import { createRateLimiter, type RateLimiter } from '../rate-limit.js';
import { type Contract, readContract } from './contract.js';
import { extAuthz } from './ext-authz.js';
import { fenceChecks } from './fence-checks.js';
import { fenceWatch } from './fence-watch.js';
import { gatekeeper } from './gatekeeper.js';
import { CallHandler, type Serving } from './handler.js';
import { mendHeaders } from './headers.js';
import { requestIdOf } from './metadata.js';
import { sessionTalk } from './session.js';
import { toWireStatus } from './status.js';
import { TlsCredentials } from './tls-credentials.js';
import { guarded, unread } from './unread.js';

/**
 * The gRPC server: all services, health and reflection.
 *
 * Its life: `listen` takes the port and answers UNAVAILABLE (STARTING) and NOT_SERVING, `serve` lets
 * calls through to the services, and `drain` ends it: no new connections, health NOT_SERVING, GOAWAY
 * to every client so that it reconnects elsewhere, calls in flight run to their end, and at the
 * deadline what is left is answered UNAVAILABLE (SHUTTING_DOWN) and cut off (F26).
 */
export interface GrpcServerOptions {
  readonly limits: Limits;
  /** Shared with the other port: a principal has one share of calls. Absent: of the limits, for this port alone. */
  readonly rateLimiter?: RateLimiter;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** How long the message of a call may take to arrive; absent: the usual time. */
  readonly requestWithinMs?: number;
}

/** What calls are served with. */
export interface GrpcServing extends Serving {
  /** Key of the names under which blocking leases appear; the same on all replicas. */
  readonly blockerKey: Uint8Array;
}

const SERVICES = [
  'writ.v1.LeaseService',
  'writ.v1.FenceService',
  'writ.v1.CredentialService',
  'writ.v1.RunService',
  'writ.v1.ConflictMapService',
  'writ.v1.AuditService',
  'writ.v1.NamespaceService',
];
/** What health checks can ask about. Reflection tells of our own contract only: of Envoy's we know a part. */
const HEALTH_SERVICES = ['', ...SERVICES, 'envoy.service.auth.v3.Authorization'];

const KEEPALIVE_MS = 30_000;
const KEEPALIVE_TIMEOUT_MS = 10_000;
/** For answers to calls that are cut off at the deadline to reach their callers. */
const CUT_OFF_GRACE_MS = 300;

export class GrpcServer {
  readonly #options: GrpcServerOptions;
  readonly #server: Server;
  readonly #handler: CallHandler;
  readonly #health = new HealthImplementation();
  /** Health watches and reflection: they would keep a drain waiting for ever. */
  readonly #longLived = new Set<{ end(): unknown }>();
  #serving: GrpcServing | null = null;
  #nameBlocker: BlockerNamer | null = null;
  #draining: Promise<void> | undefined;

  constructor(options: GrpcServerOptions) {
    this.#options = options;
    // What the library has to say, one structured line each instead of bare text on stderr.
    const say = (...words: unknown[]): void => options.log.debug({ component: 'grpc-js' }, words.join(' '));
    setLogger({ error: say, info: say, debug: say });
    this.#handler = new CallHandler({
      serving: () => this.#started(this.#serving),
      rateLimiter: options.rateLimiter ?? createRateLimiter(options.limits.maxCallsPerSecond),
      metrics: options.metrics,
      log: options.log,
    });
    const gate = gatekeeper(
      (metadata, certificate) => this.#handler.authenticate(metadata, certificate),
      (path, code) => options.metrics.rpcEnded(path.slice(path.lastIndexOf('/') + 1), status[code], 0),
      options.requestWithinMs,
    );
    this.#server = new Server({ ...serverOptions(options.limits), interceptors: [gate] });
    this.#addServices();
    this.setServing(false);
  }

  /** Takes the port; returns `host:port` as clients dial it. */
  async listen(host: string, port: number, tls: ServerTls | null = null): Promise<string> {
    const shown = host.includes(':') ? `[${host}]` : host;
    const credentials = tls === null ? ServerCredentials.createInsecure() : new TlsCredentials(tls);
    const bound = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync(`${shown}:${port}`, credentials, (error, actual) => {
        if (error === null) resolve(actual);
        else reject(cannotListen(shown, port, 'gRPC', error));
      });
    });
    mendHeaders(this.#server);
    return `${shown}:${bound}`;
  }

  /** Lets calls through. */
  serve(serving: GrpcServing): void {
    this.#nameBlocker = createBlockerNamer(serving.blockerKey);
    this.#serving = serving;
  }

  /** What health checks answer, for the server as a whole and for each service. */
  setServing(serving: boolean): void {
    const health = serving && this.#draining === undefined ? 'SERVING' : 'NOT_SERVING';
    for (const service of HEALTH_SERVICES) this.#health.setStatus(service, health);
  }

  /** Ends the server within the time; idempotent. */
  drain(withinMs: number): Promise<void> {
    this.#draining ??= this.#drain(withinMs);
    return this.#draining;
  }

  async #drain(withinMs: number): Promise<void> {
    const { log } = this.#options;
    // setServing looks at #draining, which is not assigned yet while this runs its first steps.
    for (const service of HEALTH_SERVICES) this.#health.setStatus(service, 'NOT_SERVING');
    for (const call of this.#longLived) call.end();
    this.#handler.goAway();
    const drained = new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    const patience = Math.max(0, withinMs - CUT_OFF_GRACE_MS);
    if (await endsWithin(drained, patience)) return;
    const cut = this.#handler.cutOff(
      new Fault(
        'unavailable',
        'SHUTTING_DOWN',
        'this coordinator is shutting down; call again, with the same key where the call has one',
      ),
    );
    if (cut > 0) log.warn({ calls: cut }, 'calls cut off at the shutdown deadline');
    if (await endsWithin(drained, Math.min(CUT_OFF_GRACE_MS, withinMs))) return;
    this.#server.forceShutdown();
  }

  #started<T>(part: T | null): T {
    if (part === null) throw new Fault('unavailable', 'STARTING', 'this coordinator is starting');
    return part;
  }

  #addServices(): void {
    const handler = this.#handler;
    const views = new RefusalViews((id) => this.#started(this.#nameBlocker)(id));
    const contract = readContract();
    const add = (definition: ServiceDefinition, implementation: UntypedServiceImplementation): void =>
      this.#server.addService(unread(definition, contract, this.#options.limits), implementation);
    const methods = createMethods(views);
    add(LeaseServiceService, {
      ...handler.unaries('LeaseService', methods.LeaseService),
      session: handler.duplex('LeaseService/Session', (api, rateLimiter) => sessionTalk(api, rateLimiter, views)),
    });
    add(FenceServiceService, {
      ...handler.unaries('FenceService', methods.FenceService),
      streamFenceChecks: handler.duplex('FenceService/StreamFenceChecks', fenceChecks),
      watchFences: handler.duplex('FenceService/WatchFences', fenceWatch),
    });
    add(CredentialServiceService, handler.unaries('CredentialService', methods.CredentialService));
    add(RunServiceService, handler.unaries('RunService', methods.RunService));
    add(ConflictMapServiceService, handler.unaries('ConflictMapService', methods.ConflictMapService));
    add(AuditServiceService, {
      ...handler.unaries('AuditService', methods.AuditService),
      exportEvents: handler.stream('AuditService/ExportEvents', exportEvents),
    });
    add(NamespaceServiceService, handler.unaries('NamespaceService', methods.NamespaceService));
    add(AuthorizationService, extAuthz(handler));
    // Health alone is open to everybody; whoever reflects says who it is.
    this.#health.addToServer(
      this.#wrapping((call, method) => {
        this.#track(call);
        return method !== 'watch' || !watchesUnknown(call);
      }),
    );
    new ReflectionService(asPackages(contract), { services: SERVICES }).addToServer(
      this.#wrapping((call) => {
        this.#handler.callerOf(call.metadata);
        this.#track(call);
        return true;
      }),
    );
  }

  #track(call: LongLivedCall): void {
    if (!('end' in call)) return;
    this.#longLived.add(call);
    call.once('cancelled', () => this.#longLived.delete(call));
    call.once('close', () => this.#longLived.delete(call));
  }

  /** Stands for the server when a library adds its service: each of its handlers is called if `before` says so. */
  #wrapping(before: (call: LongLivedCall, method: string) => boolean): Server {
    const addService = (definition: ServiceDefinition, implementation: UntypedServiceImplementation): void => {
      const wrapped = Object.entries(implementation).map(([name, handle]) => [
        name,
        precededBy(handle, (call) => before(call, name)),
      ]);
      this.#server.addService(guarded(definition), Object.fromEntries(wrapped) as UntypedServiceImplementation);
    };
    return { addService } as unknown as Server;
  }
}

type LongLivedCall = ServerWritableStream<unknown, unknown> | ServerDuplexStream<unknown, unknown>;

/**
 * The health library keeps for good every name that was ever watched, and whoever gets here may be anybody: a watch of
 * what there is not is answered as the protocol wants it, and kept from the library.
 */
function watchesUnknown(call: LongLivedCall): boolean {
  const { service } = (call as { readonly request?: { readonly service?: string } }).request ?? {};
  if (HEALTH_SERVICES.includes(service ?? '')) return false;
  call.write({ status: 'SERVICE_UNKNOWN' });
  return true;
}

function precededBy(handle: UntypedHandleCall, before: (call: LongLivedCall) => boolean): UntypedHandleCall {
  const inner = handle as (call: LongLivedCall, callback?: unknown) => void;
  return ((call: LongLivedCall, callback?: unknown) => {
    try {
      if (!before(call)) return;
    } catch (error) {
      call.emit('error', toWireStatus(error, requestIdOf(call.metadata)));
      return;
    }
    inner(call, callback);
  }) as UntypedHandleCall;
}

/** Of what a message may have, so much is read of one that has more: it is refused with its reason, which the library has none of. */
const READ_FOR_REFUSAL = 2;

function serverOptions(limits: Limits): ServerOptions {
  return {
    'grpc.max_receive_message_length': READ_FOR_REFUSAL * limits.maxMessageBytes,
    // Answers are bounded by what they answer: pages, and parts of an export.
    'grpc.max_send_message_length': -1,
    // A client may have all its waiting acquires on one connection, and must still be able to renew.
    'grpc.max_concurrent_streams': limits.maxWaiters + 1000,
    'grpc.keepalive_time_ms': KEEPALIVE_MS,
    'grpc.keepalive_timeout_ms': KEEPALIVE_TIMEOUT_MS,
    'grpc.keepalive_permit_without_calls': 1,
    'grpc.enable_channelz': 0,
  };
}

/** The contract as the library wants it; of a package definition it reads only the encoded files. */
function asPackages({ files }: Contract): ConstructorParameters<typeof ReflectionService>[0] {
  return { 'writ.v1': { format: 'Protocol Buffer 3 DescriptorProto', type: {}, fileDescriptorProtos: files } } as never;
}
