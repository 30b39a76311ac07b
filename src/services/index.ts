import { hostname } from 'node:os';
import { join } from 'node:path';
import { type Bounds, DEFAULT_BOUNDS } from '../domain/decide/decision.js';
import type { DomainEvent } from '../domain/event.js';
import { Fault } from '../domain/fault.js';
import type { SigningKeyState } from '../domain/signing-keys.js';
import { MILLISECOND, type Micros } from '../domain/time.js';
import { Installation, MAIN_DATABASE } from '../engine/installation.js';
import type { EngineObserver } from '../engine/options.js';
import { Replica } from '../engine/replica.js';
import { toFault } from '../engine/trouble.js';
import { fileWitness } from '../engine/witness.js';
import { monotonicMicros } from '../platform/clock.js';
import type { Config } from '../platform/config.js';
import type { Logger } from '../platform/log.js';
import type { Metrics } from '../platform/metrics.js';
import type { EventStream } from '../storage/event-stream.js';
import type { Store } from '../storage/store.js';
import { acquireWriteSet } from './acquire-write-set.js';
import { amendWriteSet } from './amend-write-set.js';
import type { CallContext, LeaseSession, SessionListener, WritApi } from './api.js';
import { exportEvents, findIds, getCheckpoint, listCheckpoints, listEvents } from './audit.js';
import { checkFence } from './check-fence.js';
import { checkFences } from './check-fences.js';
import { checkRoute } from './check-route.js';
import { fileCheckpointSigner } from './checkpoint-signer.js';
import * as conflictMap from './conflict-map.js';
import { createRun } from './create-run.js';
import { Credentials } from './credentials.js';
import { cutLog } from './cut-log.js';
import { DenialLog } from './denial-log.js';
import type { Deps } from './deps.js';
import { eraseTexts } from './erase-texts.js';
import { findBlockers } from './find-blockers.js';
import * as freezes from './freezes.js';
import { FutureTokenAlarm } from './future-tokens.js';
import { listInDoubt, settleInDoubt } from './in-doubt.js';
import { introspectCredential } from './introspect-credential.js';
import { issueCredential } from './issue-credential.js';
import { KeyRing } from './key-ring.js';
import { Leaving } from './leaving.js';
import * as mapTools from './map-tools.js';
import { MapWorkshop } from './map-workshop.js';
import { gaugesOf } from './namespace-gauges.js';
import { createNamespace, getNamespace, listNamespaces } from './namespaces.js';
import { previewWriteSet } from './preview-write-set.js';
import { getLease, listLeases } from './read-leases.js';
import { getRun, listRuns } from './read-runs.js';
import * as rehearsals from './rehearsals.js';
import { releaseLease } from './release-lease.js';
import { renewLeases } from './renew-leases.js';
import { reportOverride } from './report-override.js';
import { reportWrite } from './report-write.js';
import { revokeCredential } from './revoke-credential.js';
import { revokeLease } from './revoke-lease.js';
import { checkpointJson, ScheduledCheckpoints } from './scheduled-checkpoints.js';
import { Session } from './session.js';
import { SessionLeases } from './session-leases.js';
import { getKeys, listSigningKeys, retireSigningKey, rotateSigningKey } from './signing-keys.js';
import { StateCheckpoints } from './state-checkpoints.js';
import { stopRun, stopRuns } from './stop-runs.js';
import { Tailer } from './tailer.js';
import { takeOver } from './take-over.js';
import { updateRunState } from './update-run-state.js';
import { listWaiters } from './waiters.js';
import { watchEvents } from './watch-events.js';
import { watchFences } from './watch-fences.js';
import { WatchLimit } from './watch-limit.js';

const MAX_BATCH = 512;
const MAX_QUEUE = 20_000;
const POLL_INTERVAL: Micros = 200 * MILLISECOND;

export interface ServicesOptions {
  /** Of the main database. */
  readonly store: Store;
  /** Databases beside it that namespaces can live in, by name. */
  readonly databases?: ReadonlyMap<string, Store>;
  readonly replicaId: string;
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly verifyInitiator?: Deps['verifyInitiator'];
  /** `iss` of credentials. */
  readonly issuer: string;
  /** Encrypts the private parts of signing keys; null: none, and no credentials are issued. */
  readonly keyEncryptionKey: Uint8Array | null;
  /** Where the logs are published; absent: nowhere. Closed with the services. */
  readonly stream?: EventStream | null;
  /** What gateways are asked by; absent: no gateway has routes. */
  readonly routes?: Deps['routes'];
}

export interface Services {
  readonly api: WritApi;
  /** Resolves once the default namespace can decide. */
  start(): Promise<void>;
  /** Lets go of those who hang on a call: each is answered at once with its place, and asks another replica (F26). */
  leave(): void;
  /** Resolves when nothing runs any more; denials not yet appended are appended first. */
  stop(): Promise<void>;
  ready(): { readonly ready: boolean; readonly reasons: readonly string[] };
}

/** Builds the services over a store: the one place where engine, clock, witness and keys meet. */
export function createServices(options: ServicesOptions): Services {
  const { store, config, log, metrics } = options;
  const bounds: Bounds = { ...DEFAULT_BOUNDS, ...config.limits, maxClockSkew: config.maxClockSkewMicros };
  const databases = new Map([[MAIN_DATABASE, store], ...(options.databases ?? [])]);
  const witness = fileWitness(config.dataDir, (error) => log.error({ err: error }, 'the witness could not be written'));
  const installation = new Installation(
    databases,
    (database, livesHere) =>
      new Replica({
        store: database,
        livesHere,
        replicaId: options.replicaId,
        bounds,
        maxClockSkew: config.maxClockSkewMicros,
        failover: config.failover,
        witness,
        monotonicNow: monotonicMicros,
        observer: observerOf(metrics, log),
        maxBatch: MAX_BATCH,
        maxQueue: MAX_QUEUE,
        pollInterval: POLL_INTERVAL,
        purgeAfter: config.purgeAfterMicros,
        textRetention: config.textRetentionMicros,
      }),
  );
  const denials = new DenialLog(installation.open.bind(installation), (error) =>
    log.error({ err: error }, 'denials could not be appended'),
  );
  const signer = fileCheckpointSigner(config.checkpointKeyFile ?? join(config.dataDir, 'checkpoint-key.pem'));
  const futureTokens = new FutureTokenAlarm((seen) =>
    log.error({ ...seen }, 'a check presented a token later than the database clock: forged, or history was lost'),
  );
  const workshop = new MapWorkshop(bounds);
  const ring = keyRingOf(options, installation);
  const credentials = new Credentials({ issuer: options.issuer, ring, onLookup: metrics.credentialLookup });
  const leaving = new Leaving();
  const deps: Deps = {
    installation,
    bounds,
    maxClockSkew: config.maxClockSkewMicros,
    metrics,
    denials,
    futureTokens,
    signer,
    workshop,
    verifyInitiator: options.verifyInitiator ?? null,
    credentials,
    routes: options.routes ?? { of: () => null },
    fenceWatches: new WatchLimit('watches of fences'),
    logStreams: new WatchLimit('streams of the log'),
    sessionLeases: new SessionLeases(),
    leaving,
  };
  const tailers = createTailers(options, databases, installation);
  const checkpoints = new ScheduledCheckpoints({
    everyMs: config.checkpointEveryMs,
    engines: () => installation.loaded(),
    signer,
    write: (checkpoint) => log.info({ checkpoint: checkpointJson(checkpoint) }, 'checkpoint'),
    sentTo: `log of ${hostname()}, process ${process.pid}`,
    onProblem: (message, error) => log.warn({ err: error }, message),
  });
  const stateCheckpoints = new StateCheckpoints({
    everyMs: config.checkpointEveryMs,
    engines: () => installation.loaded(),
    onProblem: (message, error) => log.warn({ err: error }, message),
  });
  metrics.listeners(() => {
    const { sessions, leases } = deps.sessionLeases.counts;
    return { sessions, sessionLeases: leases, watches: deps.fenceWatches.count };
  });
  metrics.gauges(() => installation.loaded().map(gaugesOf));
  return {
    api: apiOf(deps),
    async start() {
      await installation.start();
      await ring.start();
      for (const tailer of tailers) tailer.start();
      checkpoints.start();
      stateCheckpoints.start();
    },
    leave: () => leaving.leave(),
    async stop() {
      checkpoints.stop();
      stateCheckpoints.stop();
      await Promise.all(tailers.map((tailer) => tailer.stop()));
      await options.stream?.close();
      await workshop.close();
      deps.sessionLeases.stop();
      ring.stop();
      await denials.close();
      futureTokens.tell();
      await installation.stop();
      await witness.close();
    },
    ready() {
      const reasons = installation.reasonsNotReady();
      return { ready: reasons.length === 0, reasons };
    },
  };
}

function observerOf(metrics: Metrics, log: Logger): EngineObserver {
  return {
    batchAppended(namespace, commands, events, duration) {
      metrics.batchAppended(commands, events.length, duration);
      for (const event of events) count(metrics, namespace, event);
    },
    appendLost: metrics.appendLost,
    gateRead: metrics.gateRead,
    problem: (message, error) => log.error({ err: error }, message),
    notice: (message, facts) => log.info(facts ?? {}, message),
  };
}

/** One for each database: the right to publish a log is kept beside the log. */
function createTailers(
  options: ServicesOptions,
  databases: ReadonlyMap<string, Store>,
  installation: Installation,
): readonly Tailer[] {
  const { replicaId, config, log, metrics, stream } = options;
  if (stream === undefined || stream === null) return [];
  const tailers = [...databases].map(
    ([name, store]) =>
      new Tailer({
        replicaId,
        store,
        stream,
        engines: () => installation.loadedIn(name),
        maxLength: config.redisStreamLength,
        monotonicNow: monotonicMicros,
        onPublished: metrics.published,
        onProblem: (message, error) => log.warn({ err: error }, message),
      }),
  );
  metrics.tailer(() => tailers.flatMap((tailer) => tailer.lags()));
  metrics.redis(() => stream.connected);
  return tailers;
}

/** A change of the keys is told to this replica's log, and recorded in that of the default namespace. */
function keyRingOf({ store, config, log, keyEncryptionKey }: ServicesOptions, installation: Installation): KeyRing {
  return new KeyRing({
    store,
    keyEncryptionKey,
    schedule: { rotateAfter: config.keyRotationMicros, maxClockSkew: config.maxClockSkewMicros },
    monotonicNow: monotonicMicros,
    onChange: (changes, actor, reason) => {
      const told = changes.map(({ keyId, state }) => ({ keyId, state }));
      log.info({ changes: told, actor }, 'signing keys changed');
      void recordKeyChange(installation, actor, told, reason).catch((error) =>
        log.error({ err: error, changes: told, actor }, 'a change of signing keys could not be recorded in the log'),
      );
    },
    onProblem: (message, error) =>
      isCredentialsOff(error) ? log.info({ reason: error.message }, message) : log.error({ err: error }, message),
  });
}

/** Without a key-encryption key: a setting, and no trouble. */
function isCredentialsOff(error: unknown): error is Fault {
  return error instanceof Fault && error.reason === 'CREDENTIALS_OFF';
}

/** In the default namespace: the keys are the whole installation's. */
async function recordKeyChange(
  installation: Installation,
  actor: string,
  changes: readonly { readonly keyId: string; readonly state: SigningKeyState }[],
  reason: string,
): Promise<void> {
  const engine = await installation.open('default');
  await engine.submit(actor, (decision) => decision.emit({ kind: 'signing_keys_changed', changes, reason }));
}

/** What an acknowledged event says to the counters. */
function count(metrics: Metrics, namespace: string, { body }: DomainEvent): void {
  if (body.kind === 'lease_granted') metrics.granted(namespace);
  else if (body.kind === 'lease_ended') metrics.leaseEnded(namespace, body.endReason);
  else if (body.kind === 'acquire_refused') metrics.refused(namespace, body.refusal);
}

function apiOf(deps: Deps): WritApi {
  const bound =
    <I, R>(service: (deps: Deps, context: CallContext, input: I) => Promise<R>) =>
    (context: CallContext, input: I): Promise<R> =>
      service(deps, context, input).catch(rethrowAsFault);
  return {
    acquireWriteSet: bound(acquireWriteSet),
    amendWriteSet: bound(amendWriteSet),
    renewLeases: bound(renewLeases),
    releaseLease: bound(releaseLease),
    revokeLease: bound(revokeLease),
    getLease: bound(getLease),
    listLeases: bound(listLeases),
    listWaiters: bound(listWaiters),
    takeOver: bound(takeOver),
    previewWriteSet: bound(previewWriteSet),
    openSession: (listener) => sessionOf(deps, listener),
    findBlockers: bound(findBlockers),
    listInDoubt: bound(listInDoubt),
    settleInDoubt: bound(settleInDoubt),
    freeze: bound(freezes.freeze),
    thaw: bound(freezes.thaw),
    listFreezes: bound(freezes.listFreezes),
    checkFence: bound(checkFence),
    checkFences: (checks, told) => checkFences(deps, checks, told),
    reportOverride: bound(reportOverride),
    checkRoute: bound(checkRoute),
    reportWrite: bound(reportWrite),
    watchFences: bound(watchFences),
    issueCredential: bound(issueCredential),
    introspectCredential: bound(introspectCredential),
    revokeCredential: bound(revokeCredential),
    eraseTexts: bound(eraseTexts),
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
    testConflictMap: bound(mapTools.testConflictMap),
    diffConflictMap: bound(mapTools.diffConflictMap),
    rollbackConflictMap: bound(mapTools.rollbackConflictMap),
    beginRehearsal: bound(rehearsals.beginRehearsal),
    recordRehearsal: bound(rehearsals.recordRehearsal),
    listRehearsals: bound(rehearsals.listRehearsals),
    listEvents: bound(listEvents),
    findIds: bound(findIds),
    exportEvents: (context, input) => exportEvents(deps, context, input),
    watchEvents: bound(watchEvents),
    getCheckpoint: (context, input) => getCheckpoint(deps, context, input).catch(rethrowAsFault),
    listCheckpoints: bound(listCheckpoints),
    cutLog: bound(cutLog),
    createNamespace: bound(createNamespace),
    getNamespace: bound(getNamespace),
    listNamespaces: bound(listNamespaces),
  };
}

function sessionOf(deps: Deps, listener: SessionListener): LeaseSession {
  const session = new Session(deps, listener);
  return {
    acquire: (context, input) => session.acquire(context, input).catch(rethrowAsFault),
    renew: (context, input) => session.renew(context, input).catch(rethrowAsFault),
    release: (context, input) => session.release(context, input).catch(rethrowAsFault),
    close: () => session.close(),
  };
}

/** Some services ask the store themselves: its errors become the same faults as the engine's. */
function rethrowAsFault(error: unknown): never {
  throw toFault(error);
}
