import type { MatchedWrite, ReadRoute, UnprotectedRoute, WriteRoute } from '../../route-table/index.js';
import type { Credential } from './credential.js';
import type { HeaderSource, Presented } from './gate-presented.js';
import type { GateRefusal } from './gate-problems.js';
import type { GuardedWrite } from './guard.js';
import type { Override } from './override.js';

/** What a gate is asked, and what it answers. */

/** A request, as the service received it. */
export interface GateRequest {
  readonly method: string;
  /** As it was sent, still escaped; a query may follow. */
  readonly path: string;
  /** Of the Host header; matters only to tables that name hosts. */
  readonly host?: string | undefined;
  readonly headers: HeaderSource;
  /** For routes whose resources are named in the request message (gRPC). */
  readonly field?: ((path: string) => string | undefined) | undefined;
  /** The URL that DPoP proofs must be for: by the address of the service that it knows itself, never by the Host header. */
  readonly url?: string | undefined;
  /** Who calls, as the service itself found out; never from a header that anybody can set. */
  readonly caller?: GateCaller | undefined;
  /** Aborted when the caller has gone. */
  readonly signal?: AbortSignal | undefined;
}

/** Who calls, as far as the service has found it out by itself. */
export interface GateCaller {
  /** The run. With it a lease of another run is refused. */
  readonly runId?: string | undefined;
  /** SHA-256 of the client certificate of the session, base64url; for credentials that are bound to one (RFC 8705). */
  readonly certificateThumbprint?: string | undefined;
  /** A person, for their override. */
  readonly person?: string | undefined;
}

/** A write that was let in. */
export interface AllowedWrite extends MatchedWrite {
  /** Undefined where the kind is only observed. */
  readonly token: bigint | undefined;
  /** A leased write. False: an optimistic one, to be made under the condition of its version (C8). */
  readonly exclusive: boolean;
  /**
   * The run asked for this very resource by name, and holds it alone: on a version conflict of a `shared_document` it may
   * go on by itself (W4). False also where the coordinator was not asked: a credential does not tell.
   */
  readonly explicit: boolean;
  /** The kind is in `observe` mode: `reason` is what `enforce` would have answered. */
  readonly observedOnly: boolean;
  /** Why: `ok`, or what `enforce` would have answered of an observed kind. */
  readonly reason: string;
  /** Not empty: the action is tracked, and `reportWrite` must say what became of the write. */
  readonly admissionId: string;
}

/** Writes that were let in, with what the guard and the service's own record need (C1b, W6). */
export interface AllowedWrites {
  readonly allowed: true;
  readonly kind: 'writes';
  /** Correlates the write with the coordinator's log. */
  readonly requestId: string;
  readonly route: WriteRoute;
  /** Who said so. `credential`: nobody was asked. */
  readonly decidedBy: 'coordinator' | 'view' | 'credential' | 'override';
  readonly writes: readonly AllowedWrite[];
  /** What the guard must admit, in the transaction of the write. Leaves out what is only observed. */
  readonly toGuard: readonly GuardedWrite[];
  /** Empty with an override, and where an observed kind let something in that no lease covers. */
  readonly runId: string;
  readonly leaseId: string;
  /** When the lease expires on the coordinator's clock. */
  readonly expiresAt: Date | undefined;
  /** `performance.now()` until which the lease lives unless it ends early; for the service's own deadline. */
  readonly validUntil: number | undefined;
  /** Where in the log it was decided; undefined when the coordinator did not. */
  readonly logRevision: bigint | undefined;
  /** The version that the caller says it read; empty: that there is none yet. Whether it is current only the service can tell. */
  readonly observedVersion: string | undefined;
  /** As it was verified here. */
  readonly credential: Credential | undefined;
  /** The override that let it in; undefined: none was needed. */
  readonly override: Override | undefined;
}

/** A request that writes nothing under Writ. */
export interface AllowedUnchecked {
  readonly allowed: true;
  readonly kind: 'reads' | 'unprotected';
  readonly requestId: string;
  /** Null: a safe method that no route names, under `unrouted: allow_reads`. */
  readonly route: ReadRoute | UnprotectedRoute | null;
}

/** A request that must not be handled: answer it with the problem. */
export interface Refused extends GateRefusal {
  readonly allowed: false;
  readonly requestId: string;
}

/** What the gate answers: let in, with or without writes under Writ, or refused. */
export type GateDecision = AllowedWrites | AllowedUnchecked | Refused;

/** A request with writes, and what was read of it. */
export interface Asked {
  readonly request: GateRequest;
  readonly presented: Presented;
  readonly route: WriteRoute;
  readonly writes: readonly MatchedWrite[];
}
