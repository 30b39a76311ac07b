import { type Hints, NO_HINTS } from '../hints.js';
import type { AppendResult, Store } from '../store.js';
import { loadAdmissions } from './admissions.js';
import { append } from './append.js';
import { connect } from './connections.js';
import { cutLog, readCut } from './cut.js';
import { appendExclusively } from './exclusive.js';
import { GateReader } from './gate.js';
import { createHints } from './hints.js';
import { claimNamespaceHome, namespaceHome } from './namespace-homes.js';
import {
  listLeases,
  listMapVersions,
  listRuns,
  loadKeys,
  loadLeases,
  loadRuns,
  loadSnapshot,
  readMapVersion,
} from './projections.js';
import { findIds, listEvents, listNamespaces, readEvent, readTailInParts } from './read.js';
import { keepCheckpoint, listCheckpoints } from './signed-checkpoints.js';
import { changeSigningKeys, readSigningKeys } from './signing-keys.js';
import { claimTailers, yieldTailers } from './tailer-leases.js';
import { eraseTextsBefore, eraseTextsOfRun, heartbeat, purge } from './upkeep.js';
import { createWriteSetMemory } from './write-set-memory.js';

/** How to reach the database; only `url` is needed. */
export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database`. It is never logged and appears in no error. */
  readonly url: string;
  /** Named prepared statements. Default true; false behind a transaction-mode pooler such as PgBouncer 1.18. */
  readonly prepared?: boolean;
  /** Connections of this store at most, without the one that listens. Default 12, at least 2. */
  readonly maxConnections?: number;
  /**
   * Sends and receives hints by NOTIFY and LISTEN. Default: as `prepared`, since LISTEN needs a session of its own and a
   * transaction-mode pooler has none to give.
   */
  readonly notify?: boolean;
  /** Carries hints instead of NOTIFY; closed with the store. */
  readonly hints?: Hints;
  /** How long a connection may take. Default 5,000. */
  readonly connectTimeoutMs?: number;
  /** How long the answer to a short statement may take before its outcome counts as lost. Default 10,000. */
  readonly answerTimeoutMs?: number;
  /** Told of connections that end and come back, one line each, without secrets. */
  readonly log?: (line: string) => void;
}

/**
 * The store on Postgres 15 to 18. The schema must be there: see migrate.ts. Nothing is connected before the first call,
 * and a server that went away is found again without a new store.
 *
 * @example
 * await migrate(url, { log });
 * const store = createPostgresStore({ url });
 * const gate = await store.readGate('default');
 * await store.close();
 */
export function createPostgresStore(options: PostgresStoreOptions): Store {
  const { url, prepared = true, notify = prepared, log = () => undefined } = options;
  const connections = connect({
    url,
    prepared,
    maxConnections: options.maxConnections ?? 12,
    connectTimeoutMs: options.connectTimeoutMs ?? 5_000,
    answerTimeoutMs: options.answerTimeoutMs ?? 10_000,
    log,
  });
  const { short, long } = connections;
  const hints = options.hints ?? (notify ? createHints(url, short, log) : NO_HINTS);
  const gates = new GateReader();
  const memory = createWriteSetMemory();
  const context = { gates, memory };
  const knownReplicas = new Set<string>();
  let closed: Promise<void> | undefined;

  const announced = <T extends AppendResult | null>(namespace: string, result: T): T => {
    if (result?.outcome === 'appended') hints.announce(namespace);
    return result;
  };

  return {
    readGate: (namespace) => short.read((session) => gates.read(session, namespace)),
    append: async (batch) =>
      announced(batch.namespace, await short.write((session) => append(session, batch, context, false))),
    appendExclusively: async (namespace, after, decide) =>
      announced(namespace, await appendExclusively(short, context, namespace, after, decide)),
    readTail: (namespace, after, limit) => short.read((session) => readTailInParts(session, namespace, after, limit)),
    readEvent: (namespace, revision) => short.read((session) => readEvent(session, namespace, revision)),
    async loadSnapshot(namespace) {
      const snapshot = await long.read((session) => loadSnapshot(session, gates, namespace));
      if (snapshot !== null) memory.stored(snapshot.gate.identity, namespace, snapshot.leases);
      return snapshot;
    },
    loadLeases: (namespace, ids) => short.read((session) => loadLeases(session, namespace, ids)),
    loadRuns: (namespace, ids) => short.read((session) => loadRuns(session, namespace, ids)),
    loadAdmissions: (namespace, ids, checks) =>
      short.read((session) => loadAdmissions(session, namespace, ids, checks)),
    loadKeys: (namespace, keys) => short.read((session) => loadKeys(session, namespace, keys)),
    listLeases: (namespace, filter) => long.read((session) => listLeases(session, namespace, filter)),
    listRuns: (namespace, filter) => long.read((session) => listRuns(session, namespace, filter)),
    findIds: (namespace, beginning, limit) => short.read((session) => findIds(session, namespace, beginning, limit)),
    listEvents: (namespace, filter) => long.read((session) => listEvents(session, namespace, filter)),
    listNamespaces: (after, limit) => long.read((session) => listNamespaces(session, after, limit)),
    namespaceHome: (namespace) => short.read((session) => namespaceHome(session, namespace)),
    claimNamespaceHome: (namespace, database) =>
      short.read((session) => claimNamespaceHome(session, namespace, database)),
    readMapVersion: (namespace, version) => long.read((session) => readMapVersion(session, namespace, version)),
    listMapVersions: (namespace, below, limit) =>
      long.read((session) => listMapVersions(session, namespace, below, limit)),
    async heartbeat(replicaId) {
      const beat = await short.read((session) => heartbeat(session, replicaId, !knownReplicas.has(replicaId)));
      knownReplicas.add(replicaId);
      return beat;
    },
    purge: (namespace, before, limit) => long.read((session) => purge(session, namespace, before, limit)),
    eraseTextsBefore: (namespace, before, limit) =>
      long.read((session) => eraseTextsBefore(session, namespace, before, limit)),
    eraseTextsOfRun: (namespace, runId, beforeRevision) =>
      long.read((session) => eraseTextsOfRun(session, namespace, runId, beforeRevision)),
    readCut: (namespace) => short.read((session) => readCut(session, namespace)),
    cutLog: (namespace, limit) => long.read((session) => cutLog(session, namespace, limit)),
    keepCheckpoint: (checkpoint) => long.read((session) => keepCheckpoint(session, checkpoint)),
    listCheckpoints: (namespace, below, limit) =>
      long.read((session) => listCheckpoints(session, namespace, below, limit)),
    readSigningKeys: () => short.read(readSigningKeys),
    changeSigningKeys: (decide) => short.write((session) => changeSigningKeys(session, decide)),
    claimTailers: (replicaId, namespaces, ttl) =>
      short.read((session) => claimTailers(session, replicaId, namespaces, ttl)),
    yieldTailers: (replicaId) => short.read((session) => yieldTailers(session, replicaId)),
    onAppended: (listener) => hints.listen(listener),
    close() {
      closed ??= hints.close().then(() => connections.close());
      return closed;
    },
  };
}
