import { randomUUID } from 'node:crypto';
import {
  type ChannelCredentials,
  Client,
  type ClientReadableStream,
  credentials,
  type CallOptions as GrpcCallOptions,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import pRetry from 'p-retry';
import { WritError } from './errors.js';
import { hostOf, type TlsOptions, tlsCredentials } from './tls.js';

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
  close(): void;
}

export interface ChannelOptions {
  readonly endpoint: string;
  /** Absent: the client certificate says who calls. */
  readonly token?: string | undefined;
  readonly tls?: TlsOptions | undefined;
  /** `beyond-loopback`: the token may travel in the clear to other machines. */
  readonly allowInsecure?: 'beyond-loopback' | undefined;
  readonly timeoutMs: number;
  readonly traceparent?: string | undefined;
}

/** Short enough that a restart of the coordinator costs no lease (F6), and bounded, so that nothing storms (F5). */
const RETRIES = 6;
const FIRST_DELAY_MS = 50;
const MAX_DELAY_MS = 2_000;
const MAX_MESSAGE_BYTES = 64 << 20;

/** One HTTP/2 connection for all services, and what every call has in common. */
export function openChannel(options: ChannelOptions): Channel {
  const { endpoint, token, timeoutMs, traceparent } = options;
  const [address, channelCredentials] = transportOf(options);
  const client = new Client(address, channelCredentials, {
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
  const metadataOf = (requestId: string, options: CallOptions) =>
    metadataFor(token, requestId, traceparent === undefined ? options : { traceparent, ...options });
  return {
    unary(method, repeat, request, options = {}, ownTimeoutMs = timeoutMs) {
      const requestId = options.requestId ?? randomUUID();
      const totalMs = options.timeoutMs ?? ownTimeoutMs;
      const deadline = performance.now() + totalMs;
      const attempt = async () => {
        try {
          return await callOnce(client, method, request, metadataOf(requestId, options), deadline, options.signal);
        } catch (error) {
          // Whoever gave up gets the reason back that they gave.
          throw options.signal?.aborted === true ? options.signal.reason : WritError.from(error, requestId, endpoint);
        }
      };
      return repeat === 'once' ? attempt() : repeatWhileUnavailable(attempt, totalMs, options.signal);
    },
    async *serverStream(method, request, options = {}) {
      const requestId = options.requestId ?? randomUUID();
      const callOptions: Partial<GrpcCallOptions> =
        options.timeoutMs === undefined ? {} : { deadline: inMs(options.timeoutMs) };
      const metadata = metadataOf(requestId, options);
      const stream = client.makeServerStreamRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        metadata,
        callOptions,
      );
      yield* reading(stream, requestId, endpoint, options.signal);
    },
    close: () => client.close(),
  };
}

/** Where to connect and how; refuses what would send a token in the clear to other machines. */
function transportOf({ endpoint, token, tls, allowInsecure }: ChannelOptions): [string, ChannelCredentials] {
  const { address, secure } = parseEndpoint(endpoint);
  if (token === undefined && tls?.certFile === undefined)
    throw new WritError('INVALID_ARGUMENT', 'give a token, or a client certificate with its key, or both');
  if (tls !== undefined && /^http:/.test(endpoint))
    throw new WritError('INVALID_ARGUMENT', `${endpoint} is plain text; with TLS files it must be https://`);
  if (secure || tls !== undefined) return [address, tlsCredentials(address, tls ?? {})];
  if (allowInsecure !== 'beyond-loopback' && !isLoopback(hostOf(address)))
    throw new WritError(
      'INVALID_ARGUMENT',
      `${address} is another machine, and the token would travel there unencrypted. Use https://${address}, or allow ` +
        'it with `allowInsecure: "beyond-loopback"` (WRIT_ALLOW_INSECURE) where the network protects it.',
    );
  return [address, credentials.createInsecure()];
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

async function repeatWhileUnavailable<S>(
  attempt: () => Promise<S>,
  totalMs: number,
  signal: AbortSignal | undefined,
): Promise<S> {
  let unavailable: WritError | undefined;
  try {
    return await pRetry(attempt, {
      retries: RETRIES,
      minTimeout: FIRST_DELAY_MS,
      maxTimeout: MAX_DELAY_MS,
      maxRetryTime: totalMs,
      randomize: true,
      shouldRetry: ({ error }) => {
        if (!(error instanceof WritError) || error.code !== 'UNAVAILABLE') return false;
        unavailable = error;
        return true;
      },
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    if (signal?.aborted === true) throw signal.reason;
    // That the time was up says less than why it was used up.
    const timeIsUp = error instanceof WritError && error.code === 'DEADLINE_EXCEEDED';
    throw timeIsUp ? (unavailable ?? error) : error;
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

function metadataFor(token: string | undefined, requestId: string, { traceparent, tracestate }: CallOptions): Metadata {
  const metadata = new Metadata();
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);
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
  signal: AbortSignal | undefined,
): Promise<S> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    // The rest of the time is reckoned on the monotonic clock; grpc-js only takes a moment of the wall clock.
    const callOptions = { deadline: inMs(deadline - performance.now()) };
    const cancel = () => call.cancel();
    const call = client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      metadata,
      callOptions,
      (error: ServiceError | null, response?: S) => {
        signal?.removeEventListener('abort', cancel);
        if (error !== null) reject(signal?.aborted === true ? signal.reason : error);
        else resolve(response as S);
      },
    );
    signal?.addEventListener('abort', cancel, { once: true });
  });
}

async function* reading<S>(
  stream: ClientReadableStream<S>,
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

function inMs(ms: number): Date {
  return new Date(Date.now() + Math.max(0, ms));
}
