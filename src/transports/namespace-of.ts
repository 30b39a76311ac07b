import type { Method } from '../auth/roles.js';

/** Requests that name their namespace elsewhere than in `namespace`; null: they concern none. */
const ELSEWHERE: Partial<Record<Method, (request: never) => unknown>> = {
  'LeaseService/PreviewWriteSet': ({ request }: { request?: { namespace: string } }) => request?.namespace ?? '',
  // Each message says so for itself.
  'LeaseService/Session': () => null,
  'FenceService/StreamFenceChecks': () => null,
  // Its first message says so.
  'FenceService/WatchFences': () => null,
  // Its caller's route table says so.
  'Authorization/Check': () => null,
  'ConflictMapService/ValidateConflictMap': () => null,
  'CredentialService/IntrospectCredential': () => null,
  'CredentialService/GetKeys': () => null,
  'CredentialService/ListSigningKeys': () => null,
  'CredentialService/RotateSigningKey': () => null,
  'CredentialService/RetireSigningKey': () => null,
  'NamespaceService/CreateNamespace': ({ name }: { name: string }) => name,
  'NamespaceService/GetNamespace': ({ name }: { name: string }) => name,
  'NamespaceService/ListNamespaces': () => null,
};

/** The namespace that a request is about, in which the caller needs a role; null: none in particular. */
export function namespaceOf(method: Method, request: unknown): string | null {
  const read = ELSEWHERE[method] ?? (({ namespace }: { namespace?: unknown }) => namespace);
  const namespace = read(request as never);
  if (namespace === null) return null;
  if (typeof namespace !== 'string') throw new Error(`nobody has said where ${method} names its namespace`);
  return orDefault(namespace);
}

/** The namespace that an empty name stands for. */
export function orDefault(namespace: string): string {
  return namespace === '' ? 'default' : namespace;
}
