import { createServer, connect as dial, type Server as NetServer, type Socket } from 'node:net';
import {
  type ChannelCredentials,
  Client,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type ServiceError,
  type sendUnaryData,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { AuditServiceService } from '../gen/writ/v1/audit_service.js';
import { ConflictMapServiceService } from '../gen/writ/v1/conflict_map_service.js';
import { CredentialServiceService } from '../gen/writ/v1/credential_service.js';
import {
  CheckFenceRequest,
  FenceServiceService,
  StreamFenceChecksRequest,
  StreamFenceChecksResponse,
} from '../gen/writ/v1/fence_service.js';
import { LeaseServiceService } from '../gen/writ/v1/lease_service.js';
import { NamespaceServiceService } from '../gen/writ/v1/namespace_service.js';
import { RunServiceService } from '../gen/writ/v1/run_service.js';
import { Front } from './front.js';
import type { Holds } from './stand-in.js';

const SERVICES = [
  AuditServiceService,
  ConflictMapServiceService,
  CredentialServiceService,
  FenceServiceService,
  LeaseServiceService,
  NamespaceServiceService,
  RunServiceService,
] as const;

export interface ProxyOptions {
  /** `host:port` on which the service under rehearsal finds the coordinator; plain text. */
  readonly listen: string;
  /** The coordinator. */
  readonly upstream: { readonly address: string; readonly credentials: ChannelCredentials };
}

/** The stand-in for services that ask the coordinator themselves, over gRPC: bytes and metadata pass as they are. */
export class CoordinatorProxy extends Front<NetServer> {
  private readonly sockets = new Set<Socket>();
  private readonly inner = new Server({ 'grpc.max_receive_message_length': -1 });
  private innerPort = 0;

  private constructor(
    listen: string,
    private readonly upstream: Client,
  ) {
    super(listen, {
      open: () => createServer((socket) => this.join(socket)),
      breakAll: () => {
        for (const socket of this.sockets) socket.destroy();
      },
    });
  }

  static async start(options: ProxyOptions): Promise<CoordinatorProxy> {
    const { address, credentials } = options.upstream;
    const upstream = new Client(address, credentials, {
      'grpc.max_receive_message_length': -1,
      'grpc.service_config_disable_resolution': 1,
    });
    const proxy = new CoordinatorProxy(options.listen, upstream);
    for (const service of SERVICES) proxy.pass(service);
    proxy.innerPort = await new Promise<number>((resolve, reject) => {
      proxy.inner.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
        error === null ? resolve(port) : reject(error),
      );
    });
    await proxy.mend();
    return proxy;
  }

  get howToAsk(): string {
    return `start it with ${this.listen} (coordinator.proxy.listen) as its coordinator`;
  }

  override hush(): void {
    super.hush();
    for (const socket of this.sockets) socket.unpipe().pause();
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.inner.forceShutdown();
    this.upstream.close();
  }

  private join(socket: Socket): void {
    const inner = dial(this.innerPort, '127.0.0.1');
    for (const [one, other] of [
      [socket, inner],
      [inner, socket],
    ] as const) {
      this.sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        this.sockets.delete(one);
        other.destroy();
      });
      if (!this.silent) one.pipe(other);
    }
  }

  private pass(service: ServiceDefinition): void {
    const definition: Record<string, ServiceDefinition[string]> = {};
    const handlers: UntypedServiceImplementation = {};
    for (const [name, method] of Object.entries(service)) {
      definition[name] = {
        ...method,
        requestSerialize: asIs,
        requestDeserialize: asIs,
        responseSerialize: asIs,
        responseDeserialize: asIs,
      };
      handlers[name] = method.requestStream
        ? (call: ServerDuplexStream<Buffer, Buffer>) => this.duplex(method.path, call)
        : method.responseStream
          ? (call: ServerWritableStream<Buffer, Buffer>) => this.serverStream(method.path, call)
          : (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) =>
              this.unary(method.path, call, answer);
    }
    this.inner.addService(definition, handlers);
  }

  private unary(path: string, call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>): void {
    const isCheck = path === FenceServiceService.checkFence.path;
    if (isCheck) this.asked = true;
    const hold = isCheck ? this.holds.of(() => CheckFenceRequest.decode(call.request)) : undefined;
    const up = this.upstream.makeUnaryRequest<Buffer, Buffer>(
      path,
      asIs,
      asIs,
      call.request,
      passedOn(call.metadata),
      { deadline: call.getDeadline() },
      (error, response) => {
        const send = () => (error === null ? answer(null, response as Buffer) : answer(statusOf(error)));
        if (hold === undefined) send();
        else hold(send);
      },
    );
    call.on('cancelled', () => up.cancel());
  }

  private serverStream(path: string, call: ServerWritableStream<Buffer, Buffer>): void {
    const up = this.upstream.makeServerStreamRequest<Buffer, Buffer>(
      path,
      asIs,
      asIs,
      call.request,
      passedOn(call.metadata),
      { deadline: call.getDeadline() },
    );
    up.on('data', (message: Buffer) => call.write(message));
    up.on('error', (error: ServiceError) => call.emit('error', statusOf(error)));
    up.on('end', () => call.end());
    call.on('cancelled', () => up.cancel());
  }

  private duplex(path: string, call: ServerDuplexStream<Buffer, Buffer>): void {
    const up = this.upstream.makeBidiStreamRequest<Buffer, Buffer>(path, asIs, asIs, passedOn(call.metadata), {
      deadline: call.getDeadline(),
    });
    const held = path === FenceServiceService.streamFenceChecks.path ? new HeldChecks(this.holds) : null;
    call.on('data', (message: Buffer) => {
      this.asked ||= held !== null;
      held?.asked(message);
      up.write(message);
    });
    call.on('end', () => up.end());
    const send = (message: Buffer) => void (call.writable && call.write(message));
    up.on('data', (message: Buffer) => (held === null ? send(message) : held.answered(message, send)));
    up.on('error', (error: ServiceError) => call.emit('error', statusOf(error)));
    up.on('end', () => call.end());
    call.on('cancelled', () => up.cancel());
  }
}

/** On one stream: the checks whose answers are to stand still, each for itself. */
class HeldChecks {
  private readonly byNumber = new Map<number, (send: () => void) => void>();

  constructor(private readonly holds: Holds) {}

  asked(message: Buffer): void {
    for (const { number, check } of StreamFenceChecksRequest.decode(message).checks) {
      const hold = check === undefined ? undefined : this.holds.of(() => check);
      if (hold !== undefined) this.byNumber.set(number, hold);
    }
  }

  answered(message: Buffer, send: (message: Buffer) => void): void {
    if (this.byNumber.size === 0) {
      send(message);
      return;
    }
    const answer = StreamFenceChecksResponse.decode(message);
    const verdicts = answer.verdicts.filter((verdict) => {
      const hold = this.byNumber.get(verdict.number);
      this.byNumber.delete(verdict.number);
      hold?.(() => send(encoded({ verdicts: [verdict], goingAway: false })));
      return hold === undefined;
    });
    send(encoded({ ...answer, verdicts }));
  }
}

function encoded(answer: StreamFenceChecksResponse): Buffer {
  return Buffer.from(StreamFenceChecksResponse.encode(answer).finish());
}

const asIs = (bytes: Buffer): Buffer => bytes;

/** What the caller said, but for what each connection says for itself. */
function passedOn(metadata: Metadata): Metadata {
  const copy = metadata.clone();
  copy.remove('user-agent');
  return copy;
}

function statusOf({ code, details, metadata }: ServiceError) {
  return { code, details, metadata: metadata ?? new Metadata() };
}
