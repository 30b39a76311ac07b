import type { AuditApi } from './api/audit.js';
import type { ConflictMapApi } from './api/conflict-map.js';
import type { CredentialApi } from './api/credentials.js';
import type { FenceApi } from './api/fences.js';
import type { LeaseApi } from './api/leases.js';
import type { NamespaceApi } from './api/namespaces.js';
import type { RunApi } from './api/runs.js';

/**
 * The services as transports see them, in the domain's words. Everything here is checked by the
 * service itself: roles, fields, bounds. Bad input, unknown ids and missing rights are thrown as
 * `Fault`; expected negative outcomes are returned.
 */
export interface WritApi extends LeaseApi, FenceApi, CredentialApi, RunApi, ConflictMapApi, AuditApi, NamespaceApi {}

export type { Explanation, TaskPair } from '../domain/conflict-map/index.js';
export type { AffectedLease, OnLiveConflict } from '../domain/decide/put-map.js';
export type * from './api/audit.js';
export type * from './api/calls.js';
export type * from './api/conflict-map.js';
export type * from './api/credentials.js';
export type * from './api/fences.js';
export type * from './api/leases.js';
export type * from './api/namespaces.js';
export type * from './api/runs.js';
