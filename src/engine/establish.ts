import { NOTHING_LOADED } from '../domain/decide/decision.js';
import { decideIdentify } from '../domain/decide/upkeep.js';
import { Fault } from '../domain/fault.js';
import { MILLISECOND, SECOND } from '../domain/time.js';
import type { Gate, Head, Snapshot, Store } from '../storage/store.js';
import { newCommand, planBatch } from './batch.js';
import { type HistoryVerdict, judgeHistory, type SeenHead } from './history.js';
import { lostBranches } from './lost-branches.js';
import type { EngineOptions } from './options.js';
import { DatabaseChanged, ReplicaLog } from './replica-log.js';
import { GENESIS, ReplicaState } from './replica-state.js';
import { pause } from './trouble.js';

/**
 * Loads a namespace and judges its history (design: fail-over and restore). When acknowledged history
 * may be gone, nothing is acknowledged until the clock is past any token that could have been lost, and
 * the first new event ends every lease and blocks every run (P2).
 *
 * Returns the log once this replica may decide; throws when the database cannot be believed now.
 */
export async function establish(
  namespace: string,
  options: EngineOptions,
  remembered: Head | null,
  onAdvance: () => void,
): Promise<ReplicaLog> {
  const snapshot = await options.store.loadSnapshot(namespace);
  if (snapshot === null)
    throw new Fault(
      'not_found',
      'NAMESPACE_NOT_FOUND',
      `There is no namespace ${JSON.stringify(namespace)}: check the name, or have an admin create it.`,
    );
  refuseUnfit(snapshot.gate, options);
  const verdict = await judge(namespace, options, snapshot, remembered);
  if (verdict.kind === 'disbelieved') throw new DatabaseChanged(verdict.why);
  const log = new ReplicaLog(
    namespace,
    options,
    await ReplicaState.load(namespace, snapshot),
    snapshot.recorded?.identity ?? null,
    onAdvance,
  );
  log.clock.observe(snapshot.gate.now);
  if (verdict.kind === 'same') {
    options.witness.note(namespace, log.head);
    return log;
  }
  const lost = verdict.kind === 'lost';
  if (lost)
    options.observer.problem(
      `namespace ${namespace}: history was lost: ${verdict.why}; every lease ends and every run is blocked`,
    );
  else options.observer.notice(`namespace ${namespace}: ${verdict.why}`);
  if (lost || verdict.settle) await pause((2 * SECOND + options.maxClockSkew) / MILLISECOND);
  await record(log, options, snapshot.gate, { lost, why: verdict.why });
  return log;
}

function refuseUnfit(gate: Gate, options: EngineOptions): void {
  if (gate.inRecovery) throw new DatabaseChanged('the server is in recovery, and a standby is never believed');
  if (!gate.durable)
    throw new Fault(
      'unavailable',
      'DATABASE_NOT_DURABLE',
      'fsync or synchronous_commit is off; Writ does not start on such a database.',
    );
  if (gate.head !== null && gate.now + options.maxClockSkew < gate.head.time) {
    throw new Fault(
      'unavailable',
      'CLOCK_BEHIND',
      'The database clock is behind the last event by more than the allowed skew.',
    );
  }
}

/**
 * Judges by every head that was seen before: this replica's own and the witness's. One that the log does
 * not continue means loss, unless the log has recorded that very loss since: then it says nothing about
 * the log as it is now.
 */
async function judge(
  namespace: string,
  options: EngineOptions,
  snapshot: Snapshot,
  remembered: Head | null,
): Promise<HistoryVerdict> {
  const facts = {
    recorded: snapshot.recorded?.identity ?? null,
    current: snapshot.gate.identity,
    failover: options.failover,
  };
  let continued: { seen: SeenHead; hashAtSeen: string } | null = null;
  for (const seen of [remembered, options.witness.read(namespace)]) {
    if (seen === null || seen.revision === 0) continue;
    const hashAtSeen = await hashAt(options.store, namespace, seen.revision);
    // Whoever cut the log had judged its history; whether it went on from there it cannot say any more.
    if (hashAtSeen === 'cut') continue;
    if (hashAtSeen === seen.hash) continued = { seen, hashAtSeen };
    else if (!(await lossRecorded(namespace, options, seen))) return judgeHistory({ ...facts, seen, hashAtSeen });
  }
  return judgeHistory({ ...facts, ...(continued ?? { seen: null, hashAtSeen: null }) });
}

/** The hash of the event at a revision, `cut` when it was cut, null when the log does not reach so far. */
async function hashAt(store: Store, namespace: string, revision: number): Promise<string | 'cut' | null> {
  const event = await store.readEvent(namespace, revision);
  if (event !== null) return event.hash;
  const cut = await store.readCut(namespace);
  if (cut === null || revision >= cut.firstRevision) return null;
  return revision === cut.firstRevision - 1 ? cut.hashBefore : 'cut';
}

/** Whether the log branched off before this head and says so: the branch was lost, and every lease of it was ended. */
async function lossRecorded(namespace: string, options: EngineOptions, seen: SeenHead): Promise<boolean> {
  const branches = await lostBranches(options.store, namespace);
  return branches.some(({ revision, time }) => revision < seen.revision && time > seen.time);
}

/** Appends `database_identified`; if somebody else was faster, the caller establishes anew. */
async function record(
  log: ReplicaLog,
  options: EngineOptions,
  gate: Gate,
  verdict: { lost: boolean; why: string },
): Promise<void> {
  const { identity } = gate;
  const { revision, hash } = log.head;
  const identify = { identity, lostHistory: verdict.lost, why: verdict.why, continuesFrom: { revision, hash } };
  const { command } = newCommand('system', (decision) => decideIdentify(decision, identify), true);
  const plan = planBatch(
    { base: log.state, head: log.head, clock: log.estimatedNow(), bounds: options.bounds, identity },
    [{ ...command, loaded: NOTHING_LOADED }],
  );
  if (plan.batch === null) throw new Error('the identity makes no event');
  const result = await options.store.append(plan.batch);
  if (result.outcome !== 'appended') throw new DatabaseChanged(`another replica is identifying it (${result.outcome})`);
  log.identity = identity;
  log.commit(plan);
  options.witness.note(log.namespace, log.head);
}

/** Creates a namespace by writing revision 1; does nothing when it exists. */
export async function createNamespace(namespace: string, actor: string, options: EngineOptions): Promise<boolean> {
  const gate = await options.store.readGate(namespace);
  refuseUnfit(gate, options);
  if (gate.head !== null) return false;
  const state = new ReplicaState(namespace, null);
  const { command } = newCommand(
    actor,
    (decision) => {
      decision.emit({ kind: 'namespace_created', name: namespace });
      decideIdentify(decision, {
        identity: gate.identity,
        lostHistory: false,
        why: 'creation',
        continuesFrom: { revision: 1, hash: '' },
      });
    },
    true,
  );
  const plan = planBatch(
    { base: state.state, head: GENESIS, clock: gate.now, bounds: options.bounds, identity: gate.identity },
    [command],
  );
  if (plan.batch === null) throw new Error('creation makes no event');
  const { outcome } = await options.store.append(plan.batch);
  if (outcome === 'appended') return true;
  // Somebody else was faster.
  if (outcome === 'stale') return false;
  throw new Fault('unavailable', 'TOO_BUSY', `Nothing was changed: the namespace could not be made now (${outcome}).`);
}
