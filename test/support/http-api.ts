import { randomUUID } from 'node:crypto';
import type { CoordinatorProcess, RoleName } from './coordinator-process.js';

/** The API over HTTP as curl would speak it; throws where the answer is no success. */
export interface HttpApi {
  get<T>(role: RoleName, path: string): Promise<T>;
  /** `key`: its idempotency key; absent: one that is new. */
  post<T>(role: RoleName, path: string, body: object, more?: { key?: string; signal?: AbortSignal }): Promise<T>;
  put<T>(role: RoleName, path: string, body: object, ifMatch: string): Promise<T>;
}

interface More {
  readonly key?: string;
  readonly signal?: AbortSignal;
  readonly ifMatch?: string;
}

export function httpApi({ http, tokens }: Pick<CoordinatorProcess, 'http' | 'tokens'>): HttpApi {
  const call = async <T>(role: RoleName, method: string, path: string, body?: object, more: More = {}): Promise<T> => {
    const answer = await fetch(`http://${http}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${tokens[role]}`,
        ...(body !== undefined && { 'content-type': 'application/json', 'idempotency-key': more.key ?? randomUUID() }),
        ...(more.ifMatch !== undefined && { 'if-match': more.ifMatch }),
      },
      ...(more.signal !== undefined && { signal: more.signal }),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text) as T;
  };
  return {
    get: (role, path) => call(role, 'GET', path),
    post: (role, path, body, more) => call(role, 'POST', path, body, more),
    put: (role, path, body, ifMatch) => call(role, 'PUT', path, body, { ifMatch }),
  };
}
