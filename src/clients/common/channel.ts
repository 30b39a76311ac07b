import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  type CallOptions as GrpcCallOptions,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import { backoffMs } from './backoff.js';
import { Endpoints } from './endpoints.js';
import { WritError } from './errors.js';
import { timeoutOf } from './timeout.js';
import { hostOf, type TlsOptions, tlsCredentials } from './tls.js';
import { clientClosed, UnderWay } from './under-way.js';
import { UnheldCredentials } from './unheld.js';

/** How one call is made. */
export interface CallOptions {
  /** The call gives up after this long, retries included. Default: of the client. */
  readonly timeoutMs?: number;
  /** Correlates the call with logs here and there; made up when absent. */
  readonly requestId?: string;
  /** W3C trace context of the caller, passed on. */
  readonly traceparent?: string;
  readonly tracestate?: string;
  /** Cancels the call. What was sent may still happen. */
  readonly signal?: AbortSignal;
  /** Not repeated by itself after UNAVAILABLE: the caller does that at its own pace. */
  readonly once?: boolean;
}

/** A method as the generated code describes it. */
export interface Method<Q, S> {
  readonly path: string;
  readonly requestSerialize: (value: Q) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => S;
}

/**
 * Whether a call may be sent again by itself after UNAVAILABLE, when nobody knows whether it happened:
 * - `repeatable`: it changes nothing, is the same however often it is done, or carries the same idempotency key;
 * - `once`: its caller decides.
 */
export type Repeat = 'repeatable' | 'once';

export interface Channel {
  unary<Q, S>(
    method: Method<Q, S>,
    repeat: Repeat,
    request: Q,
    options: CallOptions | undefined,
    timeoutMs?: number,
  ): Promise<S>;
  serverStream<Q, S>(method: Method<Q, S>, request: Q, options: CallOptions | undefined): AsyncIterable<S>;
  /** A stream in both directions with one replica. */
  duplex<Q, S>(method: Method<Q, S>, options: CallOptions | undefined): Promise<Duplex<Q, S>>;
  /** The same on a connection of its own, which keeps no process alive once something was heard on it. */
  background<Q, S>(method: Method<Q, S>, options: CallOptions | undefined): Promise<Duplex<Q, S>>;
  /** Cancels what is under way; nothing more begins. Idempotent. */
  close(): void;
}

/** A stream in both directions. */
export interface Duplex<Q, S> {
  send(request: Q): void;
  /** What comes, no faster than it is read; ends, or fails with a WritError. To be read once. */
  readonly received: AsyncIterable<S>;
  /** Nothing more is sent; what was sent is still answered, and the next one goes to another replica, where there is one. */
  finish(): void;
  /** Ends it; the next one goes to another replica, where there is one. Idempotent. */
  leave(): void;
  /** Ends it. Idempotent. */
  cancel(): void;
}

/** A bearer token, or where to get it, for tokens that are renewed: asked before every call, so it should remember. */
export type TokenSource = string | (() => string | Promise<string>);

export interface ChannelOptions {
  /** Equal replicas; one is called at a time. */
  readonly endpoints: readonly string[];
  /** Absent: the client certificate says who calls. */
  readonly token?: TokenSource | undefined;
  readonly tls?: TlsOptions | undefined;
  /** `beyond-loopback`: the token may travel in the clear to other machines. */
  readonly allowInsecure?: 'beyond-loopback' | undefined;
  readonly timeoutMs: number;
  readonly traceparent?: string | undefined;
}

/** Short enough that a restart of the coordinator costs no lease (F6), and bounded, so that nothing storms (F5). */
const RETRIES = 6;
const RETRY = { firstMs: 100, mostMs: 2_000 };
/** grpc-js ends a late call by itself, by the wall clock; this much later it is ended whatever that clock does (F12). */
const LATE_MS = 100;
const MAX_MESSAGE_BYTES = 64 << 20;

/** An HTTP/2 connection to each replica that was called, for all services, and what every call has in common. */
export function openChannel(options: ChannelOptions): Channel {
  const { token, traceparent } = options;
  const timeoutMs = timeoutOf(options.timeoutMs);
  // All are looked at now, so that a wrong one does not wait to be noticed until the others are down.
  if (token === undefined && options.tls?.certFile === undefined)
    throw new WritError('INVALID_ARGUMENT', 'give a token, or a client certificate with its key, or both');
  if (token !== undefined && typeof token !== 'function') wellFormed(token);
  for (const endpoint of options.endpoints) transportOf(endpoint, options);
  const replicas = new Endpoints(options.endpoints, (endpoint) => openClient(endpoint, options));
  const underWay = new UnderWay();
  const unheld = new Map<string, { readonly connection: Client; readonly letGo: () => void }>();
  const openUnheld = (endpoint: string) => {
    const channelCredentials = new UnheldCredentials(transportOf(endpoint, options).credentials);
    const opened = {
      connection: openClient(endpoint, options, channelCredentials),
      letGo: () => channelCredentials.letGo(),
    };
    unheld.set(endpoint, opened);
    return opened;
  };
  const metadataOf = (requestId: string, options: CallOptions) =>
    metadataFor(token, requestId, traceparent === undefined ? options : { traceparent, ...options });
  const talk = async <Q, S>(
    endpoint: string,
    connection: Client,
    { path, requestSerialize, responseDeserialize }: Method<Q, S>,
    options: CallOptions,
    heard: () => void = () => undefined,
  ): Promise<Duplex<Q, S>> => {
    const requestId = options.requestId ?? randomUUID();
    const metadata = await metadataOf(requestId, options);
    underWay.demandOpen();
    const stream = connection.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
    // Whoever reads hears of it; a stream that is only written to must not end the process.
    stream.on('error', () => undefined).once('metadata', heard);
    stream.once(
      'status',
      underWay.add(() => stream.cancel()),
    );
    const moveOn = (error: unknown): never => {
      if (error instanceof WritError && isOutOfReach(error)) replicas.moveOnFrom(endpoint);
      throw error;
    };
    return {
      send: (request) => void stream.write(request),
      received: failing(reading(stream, requestId, endpoint, options.signal), moveOn),
      finish() {
        replicas.moveOnFrom(endpoint);
        stream.end();
      },
      leave() {
        replicas.moveOnFrom(endpoint);
        stream.cancel();
      },
      cancel: () => stream.cancel(),
    };
  };
  return {
    async unary(method, repeat, request, options = {}, ownTimeoutMs = timeoutMs) {
      const requestId = options.requestId ?? randomUUID();
      const totalMs = options.timeoutMs === undefined ? ownTimeoutMs : timeoutOf(options.timeoutMs);
      const deadline = performance.now() + totalMs;
      const attempt = async () => {
        underWay.demandOpen();
        const { endpoint, connection } = replicas.current;
        try {
          const metadata = await metadataOf(requestId, options);
          return await callOnce(connection, method, request, metadata, deadline, { underWay, signal: options.signal });
        } catch (error) {
          // Whoever gave up gets the reason back that they gave.
          if (options.signal?.aborted === true) throw options.signal.reason;
          if (underWay.isClosed) throw clientClosed();
          const failure = WritError.from(error, requestId, endpoint);
          if (isOutOfReach(failure)) replicas.moveOnFrom(endpoint);
          throw failure;
        }
      };
      const isOnce = repeat === 'once' || options.once === true;
      return isOnce ? attempt() : repeatWhileUnavailable(attempt, deadline, options.signal);
    },
    async *serverStream(method, request, options = {}) {
      const requestId = options.requestId ?? randomUUID();
      const callOptions: Partial<GrpcCallOptions> =
        options.timeoutMs === undefined ? {} : { deadline: inMs(timeoutOf(options.timeoutMs)) };
      const { endpoint, connection } = replicas.current;
      const metadata = await metadataOf(requestId, options);
      underWay.demandOpen();
      const stream = connection.makeServerStreamRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        metadata,
        callOptions,
      );
      stream.once(
        'status',
        underWay.add(() => stream.cancel()),
      );
      yield* reading(stream, requestId, endpoint, options.signal);
    },
    async duplex(method, options = {}) {
      underWay.demandOpen();
      const { endpoint, connection } = replicas.current;
      return talk(endpoint, connection, method, options);
    },
    async background(method, options = {}) {
      underWay.demandOpen();
      const { endpoint } = replicas.current;
      const { connection, letGo } = unheld.get(endpoint) ?? openUnheld(endpoint);
      return talk(endpoint, connection, method, options, letGo);
    },
    close() {
      underWay.close();
      for (const connection of replicas.opened()) connection.close();
      for (const { connection } of unheld.values()) connection.close();
    },
  };
}

function openClient(endpoint: string, options: ChannelOptions, own?: ChannelCredentials): Client {
  const { address, credentials: channelCredentials } = transportOf(endpoint, options);
  return new Client(address, own ?? channelCredentials, {
    // The default of 2 minutes at most would outlast most leases.
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.min_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 2_000,
    // A connection whose other end is gone without a word is given up while a call still has time for another one.
    'grpc.keepalive_time_ms': 5_000,
    'grpc.keepalive_timeout_ms': 3_000,
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.service_config_disable_resolution': 1,
  });
}

/** Another replica may do better: it does not answer, or says itself that it cannot. */
function isOutOfReach({ code }: WritError): boolean {
  return code === 'UNAVAILABLE' || code === 'DEADLINE_EXCEEDED';
}

export interface Transport {
  readonly address: string;
  readonly credentials: ChannelCredentials;
}

/** Where to connect and how; refuses what would send a token in the clear to other machines. */
export function transportOf(
  endpoint: string,
  { tls, allowInsecure }: Pick<ChannelOptions, 'tls' | 'allowInsecure'>,
): Transport {
  const { address, secure } = parseEndpoint(endpoint);
  if (tls !== undefined && /^http:/.test(endpoint))
    throw new WritError('INVALID_ARGUMENT', `${endpoint} is plain text; with TLS files it must be https://`);
  if (secure || tls !== undefined) return { address, credentials: tlsCredentials(address, tls ?? {}) };
  if (allowInsecure !== 'beyond-loopback' && !isLoopback(hostOf(address)))
    throw new WritError(
      'INVALID_ARGUMENT',
      `${address} is another machine, and the token would travel there unencrypted. Use https://${address}, or allow ` +
        'it with `allowInsecure: "beyond-loopback"` (WRIT_ALLOW_INSECURE) where the network protects it.',
    );
  return { address, credentials: credentials.createInsecure() };
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

async function repeatWhileUnavailable<S>(
  attempt: () => Promise<S>,
  deadline: number,
  signal: AbortSignal | undefined,
): Promise<S> {
  let unavailable: WritError | undefined;
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof WritError)) throw error;
      // That the time was up says less than why it was used up.
      if (error.code === 'DEADLINE_EXCEEDED') throw unavailable ?? error;
      if (error.code !== 'UNAVAILABLE' || failures > RETRIES) throw error;
      unavailable = error;
      const wait = backoffMs(failures, RETRY);
      if (performance.now() + wait >= deadline) throw error;
      await pause(wait, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
      signal?.throwIfAborted();
    }
  }
}

/**
 * `host:port` and `http://host:port` are plain text, `https://host:port` and `grpcs://host:port` are TLS.
 *
 * @example parseEndpoint('[::1]:7410') // { address: '[::1]:7410', secure: false }
 */
export function parseEndpoint(endpoint: string): { readonly address: string; readonly secure: boolean } {
  const [, scheme = '', address = ''] = /^(?:(https?|grpcs):\/\/)?([^/\s@]+:\d{1,5})\/?$/.exec(endpoint) ?? [];
  if (address === '') {
    throw new WritError(
      'INVALID_ARGUMENT',
      `the endpoint must be host:port or https://host:port, not ${JSON.stringify(endpoint)}`,
    );
  }
  return { address, secure: scheme === 'https' || scheme === 'grpcs' };
}

/** grpc-js refuses it too, and says it back in its error. */
function wellFormed(token: string): string {
  if (typeof token !== 'string' || token === '')
    throw new WritError('INVALID_ARGUMENT', 'the token is none: it must be a text, or a function that gives one');
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new WritError('INVALID_ARGUMENT', 'the token is none: it holds a space, a line break or a letter beyond ASCII');
}

async function metadataFor(
  token: TokenSource | undefined,
  requestId: string,
  { traceparent, tracestate }: CallOptions,
): Promise<Metadata> {
  const metadata = new Metadata();
  if (token !== undefined)
    metadata.set('authorization', `Bearer ${wellFormed(typeof token === 'string' ? token : await token())}`);
  metadata.set('x-request-id', requestId);
  if (traceparent !== undefined) metadata.set('traceparent', traceparent);
  if (tracestate !== undefined) metadata.set('tracestate', tracestate);
  return metadata;
}

function callOnce<Q, S>(
  client: Client,
  method: Method<Q, S>,
  request: Q,
  metadata: Metadata,
  deadline: number,
  { underWay, signal }: { readonly underWay: UnderWay; readonly signal: AbortSignal | undefined },
): Promise<S> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    // The rest of the time is reckoned on the monotonic clock; grpc-js only takes a moment of the wall clock.
    const leftMs = Math.max(0, deadline - performance.now());
    const callOptions = { deadline: inMs(leftMs) };
    const cancel = () => call.cancel();
    let isLate = false;
    const call = client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      metadata,
      callOptions,
      (error: ServiceError | null, response?: S) => {
        signal?.removeEventListener('abort', cancel);
        over();
        clearTimeout(late);
        if (error === null) resolve(response as S);
        else if (isLate) reject(new WritError('DEADLINE_EXCEEDED', `no answer within ${Math.round(leftMs)} ms`));
        else reject(error);
      },
    );
    const late = setTimeout(() => {
      isLate = true;
      cancel();
    }, leftMs + LATE_MS);
    const over = underWay.add(cancel);
    signal?.addEventListener('abort', cancel, { once: true });
  });
}

async function* reading<S>(
  stream: ClientReadableStream<S> | ClientDuplexStream<never, S>,
  requestId: string,
  endpoint: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<S> {
  const cancel = () => stream.cancel();
  signal?.addEventListener('abort', cancel, { once: true });
  if (signal?.aborted === true) cancel();
  try {
    for await (const message of stream) yield message as S;
  } catch (error) {
    signal?.throwIfAborted();
    throw WritError.from(error, requestId, endpoint);
  } finally {
    signal?.removeEventListener('abort', cancel);
    // A reader that stops early has seen enough; what grpc-js says to the cancelling is of no interest.
    stream.on('error', () => undefined);
    stream.cancel();
  }
}

async function* failing<S>(parts: AsyncIterable<S>, failed: (error: unknown) => never): AsyncGenerator<S> {
  try {
    yield* parts;
  } catch (error) {
    failed(error);
  }
}

function inMs(ms: number): Date {
  return new Date(Date.now() + Math.max(0, ms));
}
