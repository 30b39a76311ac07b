import { join } from 'node:path';
import { type Bounds, DEFAULT_BOUNDS } from '../domain/decide/decision.js';
import type { DomainEvent } from '../domain/event.js';
import { Fault } from '../domain/fault.js';
import type { SigningKeyState } from '../domain/signing-keys.js';
import { MILLISECOND, type Micros } from '../domain/time.js';
import { Replica } from '../engine/replica.js';
import { toFault } from '../engine/trouble.js';
import { fileWitness } from '../engine/witness.js';
import { monotonicMicros } from '../platform/clock.js';
import type { Config } from '../platform/config.js';
import type { Logger } from '../platform/log.js';
import type { Metrics } from '../platform/metrics.js';
import type { Store } from '../storage/store.js';
import { acquireWriteSet, previewWriteSet } from './acquire-write-set.js';
import type { CallContext, WritApi } from './api.js';
import { exportEvents, getCheckpoint, listEvents } from './audit.js';
import { checkFence } from './check-fence.js';
import { fileCheckpointSigner } from './checkpoint-signer.js';
import * as conflictMap from './conflict-map.js';
import { createRun } from './create-run.js';
import { Credentials } from './credentials.js';
import { DenialLog } from './denial-log.js';
import type { Deps } from './deps.js';
import { findBlockers } from './find-blockers.js';
import { FutureTokenAlarm } from './future-tokens.js';
import { introspectCredential } from './introspect-credential.js';
import { issueCredential } from './issue-credential.js';
import { KeyRing } from './key-ring.js';
import { MapWorkshop } from './map-workshop.js';
import { createNamespace, getNamespace, listNamespaces } from './namespaces.js';
import { getLease, listLeases } from './read-leases.js';
import { getRun, listRuns } from './read-runs.js';
import { releaseLease } from './release-lease.js';
import { renewLeases } from './renew-leases.js';
import { revokeCredential } from './revoke-credential.js';
import { revokeLease } from './revoke-lease.js';
import { getKeys, listSigningKeys, retireSigningKey, rotateSigningKey } from './signing-keys.js';
import { stopRun, stopRuns } from './stop-runs.js';
import { updateRunState } from './update-run-state.js';

const MAX_BATCH = 512;
const MAX_QUEUE = 20_000;
const POLL_INTERVAL: Micros = 200 * MILLISECOND;

export interface ServicesOptions {
  readonly store: Store;
  readonly replicaId: string;
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly verifyInitiator?: Deps['verifyInitiator'];
  /** `iss` of credentials. */
  readonly issuer: string;
  /** Encrypts the private parts of signing keys; null: none, and no credentials are issued. */
  readonly keyEncryptionKey: Uint8Array | null;
}

export interface Services {
  readonly api: WritApi;
  /** Resolves once the default namespace can decide. */
  start(): Promise<void>;
  /** Resolves when nothing runs any more; denials not yet appended are appended first. */
  stop(): Promise<void>;
  ready(): { readonly ready: boolean; readonly reasons: readonly string[] };
}

/** Builds the services over a store: the one place where engine, clock, witness and keys meet. */
export function createServices(options: ServicesOptions): Services {
  const { store, config, log, metrics } = options;
  const bounds: Bounds = { ...DEFAULT_BOUNDS, ...config.limits, maxClockSkew: config.maxClockSkewMicros };
  const replica = new Replica({
    store,
    replicaId: options.replicaId,
    bounds,
    maxClockSkew: config.maxClockSkewMicros,
    failover: config.failover,
    witness: fileWitness(config.dataDir, (error) => log.error({ err: error }, 'the witness could not be written')),
    monotonicNow: monotonicMicros,
    observer: {
      batchAppended(namespace, commands, events, duration) {
        metrics.batchAppended(commands, events.length, duration);
        for (const event of events) count(metrics, namespace, event);
      },
      appendLost: metrics.appendLost,
      gateRead: metrics.gateRead,
      problem: (message, error) => log.error({ err: error }, message),
      notice: (message, facts) => log.info(facts ?? {}, message),
    },
    maxBatch: MAX_BATCH,
    maxQueue: MAX_QUEUE,
    pollInterval: POLL_INTERVAL,
    purgeAfter: config.purgeAfterMicros,
  });
  const denials = new DenialLog(replica.open.bind(replica), (error) =>
    log.error({ err: error }, 'denials could not be appended'),
  );
  const signer = fileCheckpointSigner(config.checkpointKeyFile ?? join(config.dataDir, 'checkpoint-key.pem'));
  const futureTokens = new FutureTokenAlarm((seen) =>
    log.error({ ...seen }, 'a check presented a token later than the database clock: forged, or history was lost'),
  );
  const workshop = new MapWorkshop(bounds);
  const ring = new KeyRing({
    store,
    keyEncryptionKey: options.keyEncryptionKey,
    schedule: { rotateAfter: config.keyRotationMicros, maxClockSkew: config.maxClockSkewMicros },
    monotonicNow: monotonicMicros,
    onChange: (changes, actor, reason) => {
      const told = changes.map(({ keyId, state }) => ({ keyId, state }));
      log.info({ changes: told, actor }, 'signing keys changed');
      void recordKeyChange(replica, actor, told, reason).catch((error) =>
        log.error({ err: error, changes: told, actor }, 'a change of signing keys could not be recorded in the log'),
      );
    },
    onProblem: (message, error) =>
      isCredentialsOff(error) ? log.info({ reason: error.message }, message) : log.error({ err: error }, message),
  });
  const credentials = new Credentials({ issuer: options.issuer, ring, onLookup: metrics.credentialLookup });
  const deps: Deps = {
    replica,
    store,
    bounds,
    maxClockSkew: config.maxClockSkewMicros,
    metrics,
    denials,
    futureTokens,
    signer,
    workshop,
    verifyInitiator: options.verifyInitiator ?? null,
    credentials,
  };
  metrics.gauges(() => replica.loaded().map(gaugesOf));
  return {
    api: apiOf(deps),
    async start() {
      await replica.start();
      await ring.start();
    },
    async stop() {
      await workshop.close();
      ring.stop();
      await denials.close();
      futureTokens.tell();
      await replica.stop();
    },
    ready() {
      const reasons = replica.reasonsNotReady();
      return { ready: reasons.length === 0, reasons };
    },
  };
}

/** Without a key-encryption key: a setting, and no trouble. */
function isCredentialsOff(error: unknown): error is Fault {
  return error instanceof Fault && error.reason === 'CREDENTIALS_OFF';
}

/** In the default namespace: the keys are the whole installation's. */
async function recordKeyChange(
  replica: Replica,
  actor: string,
  changes: readonly { readonly keyId: string; readonly state: SigningKeyState }[],
  reason: string,
): Promise<void> {
  const engine = await replica.open('default');
  await engine.submit(actor, (decision) => decision.emit({ kind: 'signing_keys_changed', changes, reason }));
}

/** What an acknowledged event says to the counters. */
function count(metrics: Metrics, namespace: string, { body }: DomainEvent): void {
  if (body.kind === 'lease_granted') metrics.granted(namespace);
  else if (body.kind === 'lease_ended') metrics.leaseEnded(namespace, body.endReason);
  else if (body.kind === 'acquire_refused') metrics.refused(namespace, body.refusal);
}

function gaugesOf(engine: ReturnType<Replica['loaded']>[number]) {
  const now = engine.estimatedNow();
  let oldest = now;
  if (engine.state.waitingLeases > 0) {
    for (const lease of engine.state.leases.values())
      if (lease.state === 'waiting') oldest = Math.min(oldest, lease.createdAt);
  }
  return {
    namespace: engine.namespace,
    liveLeases: engine.state.activeLeases,
    waiters: engine.state.waitingLeases,
    oldestWaiterMicros: now - oldest,
    logLag: engine.lag,
    queueDepth: engine.queueLength,
  };
}

function apiOf(deps: Deps): WritApi {
  const bound =
    <I, R>(service: (deps: Deps, context: CallContext, input: I) => Promise<R>) =>
    (context: CallContext, input: I): Promise<R> =>
      service(deps, context, input).catch(rethrowAsFault);
  return {
    acquireWriteSet: bound(acquireWriteSet),
    renewLeases: bound(renewLeases),
    releaseLease: bound(releaseLease),
    revokeLease: bound(revokeLease),
    getLease: bound(getLease),
    listLeases: bound(listLeases),
    previewWriteSet: bound(previewWriteSet),
    findBlockers: bound(findBlockers),
    checkFence: bound(checkFence),
    issueCredential: bound(issueCredential),
    introspectCredential: bound(introspectCredential),
    revokeCredential: bound(revokeCredential),
    getKeys: () => getKeys(deps).catch(rethrowAsFault),
    listSigningKeys: () => listSigningKeys(deps).catch(rethrowAsFault),
    rotateSigningKey: bound(rotateSigningKey),
    retireSigningKey: bound(retireSigningKey),
    createRun: bound(createRun),
    getRun: bound(getRun),
    listRuns: bound(listRuns),
    updateRunState: bound(updateRunState),
    stopRun: bound(stopRun),
    stopRuns: bound(stopRuns),
    getConflictMap: bound(conflictMap.getConflictMap),
    putConflictMap: bound(conflictMap.putConflictMap),
    validateConflictMap: bound(conflictMap.validateConflictMap),
    previewConflictMap: bound(conflictMap.previewConflictMap),
    explainConflict: bound(conflictMap.explainConflict),
    listConflictMapVersions: bound(conflictMap.listConflictMapVersions),
    resolveResource: bound(conflictMap.resolveResource),
    getTaskMatrix: bound(conflictMap.getTaskMatrix),
    listUnmatchedResources: bound(conflictMap.listUnmatchedResources),
    listEvents: bound(listEvents),
    exportEvents: (context, input) => exportEvents(deps, context, input),
    getCheckpoint: (context) => getCheckpoint(deps, context).catch(rethrowAsFault),
    createNamespace: bound(createNamespace),
    getNamespace: bound(getNamespace),
    listNamespaces: bound(listNamespaces),
  };
}

/** Some services ask the store themselves: its errors become the same faults as the engine's. */
function rethrowAsFault(error: unknown): never {
  throw toFault(error);
}
