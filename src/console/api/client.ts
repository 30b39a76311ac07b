import { learnServerDate } from '../clock.js';
import type { Query } from '../pure/paths.js';
import { currentNamespace } from '../router.js';
import { createStore } from '../store.js';
import { problemOf } from './problem.js';

/** What goes with a call. */
export interface CallOptions {
  readonly query?: Query;
  readonly body?: unknown;
  /** Of a POST that creates: the same key again creates nothing more. */
  readonly idempotencyKey?: string;
  /** The version that a change is against. */
  readonly ifMatch?: string;
  readonly signal?: AbortSignal;
  /** Default: the namespace that is looked at; null: the call is about none. */
  readonly namespace?: string | null;
}

export interface Answer<T> {
  readonly value: T;
  readonly etag: string | null;
}

/** Proves that a change was asked for by this page and not by another one in the same browser. */
export const csrf = createStore('');
/** Counts up when the coordinator knows nobody any more, or another session: it is over, or another tab began one. */
export const signedOut = createStore(0);

/** Calls the coordinator; throws a Problem. */
export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<Answer<T>> {
  const response = await send(method, path, options);
  if (response.status === 204) return { value: undefined as T, etag: null };
  return { value: (await response.json()) as T, etag: response.headers.get('etag') };
}

/** The same, with the body left as it comes. */
export async function send(method: string, path: string, options: CallOptions = {}): Promise<Response> {
  const { body, idempotencyKey, ifMatch, signal } = options;
  const headers = new Headers({ accept: 'application/json, application/problem+json' });
  if (body !== undefined) headers.set('content-type', 'application/json');
  if (idempotencyKey !== undefined) headers.set('idempotency-key', idempotencyKey);
  if (ifMatch !== undefined) headers.set('if-match', ifMatch);
  if (method !== 'GET') headers.set('writ-csrf', csrf.get());
  const response = await fetch(addressOfCall(path, options), {
    method,
    headers,
    credentials: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  });
  learnServerDate(response.headers.get('date'));
  if (response.ok) return response;
  const problem = await problemOf(response);
  const isOther = problem.isSignedOut || problem.reason === 'CSRF_REQUIRED';
  if (isOther && path.startsWith('/v1/')) signedOut.set(signedOut.get() + 1);
  throw problem;
}

/** The address that a call goes to, such as for a download. */
export function addressOfCall(path: string, { query = {}, namespace = currentNamespace() }: CallOptions = {}): string {
  const search = new URLSearchParams();
  if (namespace !== null) search.set('namespace', namespace);
  for (const [name, value] of Object.entries(query)) {
    for (const one of typeof value === 'string' ? [value] : (value ?? [])) {
      if (one !== '') search.append(name, one);
    }
  }
  const text = search.toString();
  return text === '' ? path : `${path}?${text}`;
}

export const get = async <T>(path: string, options: CallOptions = {}): Promise<T> =>
  (await call<T>('GET', path, options)).value;

export const post = async <T>(path: string, body: unknown, options: CallOptions = {}): Promise<T> =>
  (await call<T>('POST', path, { ...options, body })).value;

/** A key for a call that creates; made when the person decides, so that a repetition is the same decision. */
export const newKey = (): string => crypto.randomUUID();
