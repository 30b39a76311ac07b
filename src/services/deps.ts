import { createHash } from 'node:crypto';
import type { Role } from '../auth/principal.js';
import type { Bounds } from '../domain/decide/decision.js';
import type { Micros } from '../domain/time.js';
import { canonicalJson } from '../engine/canonical-json.js';
import type { Installation } from '../engine/installation.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import type { Metrics } from '../platform/metrics.js';
import type { CallContext } from './api.js';
import type { CheckpointSigner } from './checkpoint-signer.js';
import type { Credentials } from './credentials.js';
import type { DenialLog } from './denial-log.js';
import { namespaceOf } from './fields.js';
import type { FutureTokenAlarm } from './future-tokens.js';
import type { Leaving } from './leaving.js';
import type { MapWorkshop } from './map-workshop.js';
import type { RouteTables } from './route-tables.js';
import type { SessionLeases } from './session-leases.js';
import type { WatchLimit } from './watch-limit.js';

/** What every service works with. */
export interface Deps {
  readonly installation: Installation;
  readonly bounds: Bounds;
  readonly maxClockSkew: Micros;
  readonly metrics: Metrics;
  readonly denials: DenialLog;
  readonly futureTokens: FutureTokenAlarm;
  readonly signer: CheckpointSigner;
  readonly workshop: MapWorkshop;
  /**
   * The name of the person whose token it is (I2); rejects with a Fault when it is not one of a configured issuer's, or
   * is not meant for the caller. Null: no issuer is configured.
   */
  readonly verifyInitiator: ((token: string, caller: string) => Promise<string>) | null;
  readonly credentials: Credentials;
  readonly routes: Pick<RouteTables, 'of'>;
  readonly fenceWatches: WatchLimit;
  readonly logStreams: WatchLimit;
  readonly sessionLeases: SessionLeases;
  /** Whoever hangs on a waiting request is told its place when this replica is about to shut down. */
  readonly leaving: Pick<Leaving, 'hasLeft' | 'onLeave'>;
}

/** The engine of the call's namespace. */
export function engineOf(deps: Deps, context: CallContext): Promise<NamespaceEngine> {
  return deps.installation.open(namespaceOf(context.namespace));
}

/** What an idempotency key is compared by: the canonical request without wait and tracing (P6). */
export function fingerprint(request: unknown): string {
  return createHash('sha256').update(canonicalJson(request)).digest('hex');
}

export function hasRole(context: CallContext, ...roles: Role[]): boolean {
  return roles.some((role) => context.principal.roles.has(role));
}

/** Correlation ids worth keeping in the log: the one the caller chose. */
export function requestIds(...ids: string[]): string[] {
  return ids.filter((id) => id !== '');
}
