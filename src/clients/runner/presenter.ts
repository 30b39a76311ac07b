import { randomUUID } from 'node:crypto';
import { InterceptingCall, type Interceptor, Metadata, status } from '@grpc/grpc-js';
import { context, propagation } from '@opentelemetry/api';
import { generateProof } from 'dpop';
import type { WritClient } from '../common/connect.js';
import { CredentialKeeper } from './credentials.js';
import { UndeclaredWriteError } from './errors.js';
import type { Target, Targets } from './targets.js';

/** A request to a declared target. */
export interface PresentedRequestInit extends RequestInit {
  /**
   * The resources that it writes, in the order in which the target's route names them; the lease must cover each.
   * Required for every method but GET, HEAD and OPTIONS; empty for a request that writes nothing.
   */
  readonly writes?: readonly string[];
  /**
   * Correlates what happens because of this request, as `x-request-id`. Default: a new one. Whoever sends the same
   * request again, because nobody knows whether it arrived, gives the same one.
   */
  readonly requestId?: string;
}

/** A call over gRPC. */
export interface PresentedCall {
  /** The declared target whose credential is presented. Absent: lease id and tokens. */
  readonly audience?: string;
  /** Resources whose fencing tokens are sent along; the lease must cover each. */
  readonly writes?: readonly string[];
  /** Correlates the call with the logs of target and coordinator. Default: a new one. */
  readonly requestId?: string;
}

/** As much of a lease as it takes to present it. */
interface Held {
  readonly id: string;
  readonly runId: string;
  readonly namespace: string;
  readonly signal: AbortSignal;
  token(resource: string): bigint | undefined;
  assertHeld(): void;
}

interface PresenterOptions {
  readonly client: WritClient;
  readonly targets: Targets;
  readonly traceparent?: string | undefined;
}

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * What a run shows to targets, over HTTP and gRPC alike: its credential or else the lease with its tokens, a correlation
 * id and the trace context. Credentials go to declared targets only, and nothing is sent once the lease is not held.
 */
export class Presenter {
  private readonly keepers = new Map<Target, CredentialKeeper>();
  /** The last nonce that each origin demands in proofs (RFC 9449, section 8.2). */
  private readonly nonces = new Map<string, string>();

  constructor(
    private readonly lease: Held,
    private readonly options: PresenterOptions,
  ) {}

  /** The lease covers something else by now: what was issued for it before is not shown any more. */
  renewCredentials(): void {
    for (const keeper of this.keepers.values()) keeper.forget();
  }

  leaseHeaders(resources: readonly string[]): Record<string, string> {
    const tokens = resources.map((resource) => this.tokenOf(resource).toString());
    return { 'writ-lease': this.lease.id, ...(tokens.length === 0 ? {} : { 'writ-fencing-token': tokens.join(',') }) };
  }

  async fetch(address: string | URL, init: PresentedRequestInit): Promise<Response> {
    const { writes, requestId, ...rest } = init;
    const url = new URL(address);
    const target = this.options.targets.at(url);
    const method = (init.method ?? 'GET').toUpperCase();
    if (writes === undefined && !SAFE.has(method)) throw new TypeError(`say in \`writes\` what the ${method} writes`);
    if (rest.redirect === 'follow')
      throw new TypeError('a redirect is not followed: what is presented would go where it leads');
    const headers = this.commonHeaders(new Headers(rest.headers), requestId, target);
    const send = async (): Promise<Response> => {
      for (const [name, value] of Object.entries(await this.proven(target, writes ?? [], method, url)))
        headers.set(name, value);
      const signal = rest.signal == null ? this.lease.signal : AbortSignal.any([this.lease.signal, rest.signal]);
      const call = target.fetch ?? fetch;
      // Last of all: getting a credential may have taken as long as it liked.
      this.lease.assertHeld();
      return call(url, { ...rest, method, headers, signal, redirect: rest.redirect ?? 'manual' });
    };
    const response = await send();
    const isNew = this.noteNonce(target, url.origin, response);
    // The target did nothing but ask for its nonce.
    if (!isNew || response.status !== 401 || !isReadAgain(rest.body)) return response;
    await response.body?.cancel();
    const again = await send();
    this.noteNonce(target, url.origin, again);
    return again;
  }

  async metadata({ audience, writes = [], requestId }: PresentedCall): Promise<Metadata> {
    const target = audience === undefined ? undefined : this.options.targets.named(audience);
    if (target?.dpop !== undefined)
      throw new TypeError(
        'a DPoP proof names a method and an address of HTTP: over gRPC bind to the client certificate',
      );
    const metadata = new Metadata();
    for (const [name, value] of this.commonHeaders(new Headers(), requestId, target)) metadata.set(name, value);
    const presented = target === undefined ? this.leaseHeaders(writes) : await this.credentialHeaders(target, writes);
    for (const [name, value] of Object.entries(presented)) metadata.set(name, value);
    this.lease.assertHeld();
    return metadata;
  }

  interceptor(call: PresentedCall): Interceptor {
    const { signal } = this.lease;
    return (options, nextCall) => {
      const under = nextCall(options);
      const cancel = () => under.cancelWithStatus(status.ABORTED, reasonOf(signal));
      return new InterceptingCall(under, {
        start: (metadata, listener, next) => {
          const begin = (presented: Metadata) => {
            metadata.merge(presented);
            signal.addEventListener('abort', cancel, { once: true });
            next(metadata, {
              onReceiveStatus: (ended, passOn) => {
                signal.removeEventListener('abort', cancel);
                passOn(ended);
              },
            });
          };
          const refuse = (error: Error) => {
            const details = { code: status.ABORTED, details: error.message, metadata: new Metadata() };
            listener.onReceiveStatus(details);
          };
          this.metadata(call).then(begin, refuse);
        },
      });
    };
  }

  private async proven(
    target: Target,
    writes: readonly string[],
    method: string,
    url: URL,
  ): Promise<Record<string, string>> {
    if (target.audience === undefined) return writes.length === 0 ? {} : this.leaseHeaders(writes);
    return this.credentialHeaders(target, writes, { method, url });
  }

  /** The credential; with a key also the proof that this request is its holder's. */
  private async credentialHeaders(
    target: Target,
    writes: readonly string[],
    request?: { readonly method: string; readonly url: URL },
  ): Promise<Record<string, string>> {
    for (const resource of writes) this.tokenOf(resource);
    const { token, scheme } = await this.keeperOf(target).get();
    const authorization = `${scheme} ${token}`;
    if (target.dpop === undefined || request === undefined) return { authorization };
    const { method, url } = request;
    // Query and fragment are no part of what is proven (RFC 9449, section 4.2).
    const htu = `${url.origin}${url.pathname}`;
    return { authorization, dpop: await generateProof(target.dpop, htu, method, this.nonces.get(url.origin), token) };
  }

  private keeperOf(target: Target): CredentialKeeper {
    let keeper = this.keepers.get(target);
    if (keeper === undefined) {
      const { id: leaseId, runId, namespace } = this.lease;
      const source = { client: this.options.client, namespace, runId, leaseId };
      keeper = new CredentialKeeper(source, target.audience ?? '', target.dpop);
      this.keepers.set(target, keeper);
    }
    return keeper;
  }

  private tokenOf(resource: string): bigint {
    const token = this.lease.token(resource);
    if (token === undefined) throw new UndeclaredWriteError(resource);
    return token;
  }

  private commonHeaders(headers: Headers, requestId: string | undefined, target: Target | undefined): Headers {
    if (target?.audience !== undefined && headers.has('authorization'))
      throw new TypeError('`authorization` is where the credential of the lease goes: leave it out');
    if (requestId !== undefined || !headers.has('x-request-id')) headers.set('x-request-id', requestId ?? randomUUID());
    if (headers.has('traceparent')) return headers;
    const trace: Record<string, string> = {};
    propagation.inject(context.active(), trace);
    const { traceparent } = this.options;
    if (trace.traceparent === undefined && traceparent !== undefined) headers.set('traceparent', traceparent);
    for (const [name, value] of Object.entries(trace)) headers.set(name, value);
    return headers;
  }

  /** Whether the target demands another nonce than the last proof had. */
  private noteNonce(target: Target, origin: string, response: Response): boolean {
    const nonce = response.headers.get('dpop-nonce');
    if (target.dpop === undefined || nonce === null || nonce === this.nonces.get(origin)) return false;
    this.nonces.set(origin, nonce);
    return true;
  }
}

/** A stream can be read only once, and so sent only once. */
function isReadAgain(body: RequestInit['body']): boolean {
  if (body == null || typeof body === 'string' || ArrayBuffer.isView(body)) return true;
  return [ArrayBuffer, URLSearchParams, Blob, FormData].some((kind) => body instanceof kind);
}

function reasonOf({ reason }: AbortSignal): string {
  return reason instanceof Error ? reason.message : String(reason);
}
