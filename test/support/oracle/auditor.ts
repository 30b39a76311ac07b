import type { DomainEvent } from '../../../src/domain/event.js';
import type { Micros } from '../../../src/domain/time.js';
import type { EventRecord } from '../../../src/storage/store.js';
import { leaseAmended } from './audit/amendments.js';
import { pairOf } from './audit/audited-lease.js';
import { historyLost, leaseEnded, lockDelayEnded } from './audit/ends.js';
import { Facts, type OracleCredentials } from './audit/facts.js';
import { patternFrozen, patternThawed } from './audit/freezes.js';
import { leaseGranted, leaseQueued } from './audit/grants.js';
import { nobodyIsStillBelieved, nobodyOverlaps, nobodyWaitsInACircle } from './audit/held-together.js';
import { LogChain } from './audit/log-chain.js';
import { leaseReexpanded, mapPut } from './audit/map-changes.js';
import { partsAreSuspended } from './audit/parts.js';
import { leaseClaimed, leaseRenewed } from './audit/renewals.js';
import { runCreated, runStateChanged } from './audit/runs.js';
import { doubtSettled, endedRunsAreResolved, writesAdmitted, writesReported } from './audit/tracked-writes.js';
import { SECOND } from './time.js';
import { promise } from './violation.js';
import { Oracle } from './write-sets.js';

const NOBODY: ReadonlySet<string> = new Set();

/**
 * Reads the log as it grows, with the database clock at each append, and holds every event against the promises
 * (docs/concepts.md). It folds the events itself, for the few facts that it needs.
 */
export class Auditor {
  readonly facts: Facts;
  private readonly chain: LogChain;

  constructor(
    universe: readonly string[],
    /** How the log's hashes are made, and how its events are read: the two things that are taken from src. */
    private readonly log: {
      readonly genesisHash: string;
      readonly hashOf: (record: EventRecord) => string;
      readonly eventOf: (record: EventRecord) => DomainEvent;
    },
    maxClockSkew: Micros,
    credentials: OracleCredentials = { life: 60 * SECOND, tolerance: 5 * SECOND, skew: 5 * SECOND },
    /** The database may lose its last commits: then one event ends every lease, and blocks every run. */
    private readonly mayLoseHistory = false,
  ) {
    this.facts = new Facts(new Oracle(universe), credentials);
    this.chain = new LogChain(log.genesisHash, log.hashOf, maxClockSkew);
  }

  /** One append, all of it, at this time of the database clock. */
  appended(records: readonly EventRecord[], databaseNow: Micros): void {
    const { facts } = this;
    let before = NOBODY;
    let kept = false;
    for (const record of records) {
      this.chain.continues(record, databaseNow);
      facts.revision = record.revision;
      const event = this.log.eventOf(record);
      const { body } = event;
      if (body.kind === 'conflict_map_put') {
        before = new Set([...[...facts.leases.active()].map(({ leaseId }) => leaseId), ...facts.accepted.keys()]);
        kept = body.onLiveConflict === 'keep_until_end';
      }
      // Whoever was ended because of a conflict was in it before.
      if (body.kind === 'lease_ended' && body.endReason === 'map_changed')
        for (const other of before) facts.excused.add(pairOf(body.leaseId, other));
      this.apply(event, databaseNow);
    }
    partsAreSuspended(facts, databaseNow);
    nobodyOverlaps(facts, kept ? before : NOBODY, databaseNow);
    nobodyIsStillBelieved(facts, kept ? before : NOBODY, databaseNow);
    endedRunsAreResolved(facts);
    nobodyWaitsInACircle(facts, databaseNow);
    promise(facts.takenOver.size === 0, 'C12: leases were taken over, and nobody took them');
  }

  private apply(event: DomainEvent, databaseNow: Micros): void {
    const { facts } = this;
    const { body } = event;
    switch (body.kind) {
      case 'run_created':
        runCreated(facts, body);
        return;
      case 'run_state_changed':
        runStateChanged(facts, body);
        return;
      case 'writes_admitted':
        writesAdmitted(facts, event, body, databaseNow);
        return;
      case 'writes_reported':
        writesReported(facts, body);
        return;
      case 'doubt_settled':
        doubtSettled(facts, body);
        return;
      case 'conflict_map_put':
        mapPut(facts, event, body);
        return;
      case 'lease_queued':
        leaseQueued(facts, body.lease, body.fingerprint);
        return;
      case 'lease_granted':
        leaseGranted(facts, body.lease, body.fingerprint, event.time, databaseNow);
        return;
      case 'lease_attached':
        for (const { leaseId, attachedUntil } of body.attachments) facts.change(leaseId, 'waiting', { attachedUntil });
        return;
      case 'lease_claimed':
        leaseClaimed(facts, body.leaseId, databaseNow);
        return;
      case 'leases_renewed':
        for (const renewal of body.renewals) leaseRenewed(facts, renewal, databaseNow);
        return;
      case 'lease_reexpanded':
        leaseReexpanded(facts, body.leaseId, body.entries, event.time);
        return;
      case 'lease_amended':
        leaseAmended(facts, body, event.time, databaseNow);
        return;
      case 'lease_ended':
        leaseEnded(facts, body.leaseId, body.endReason, body.reason, databaseNow, body.lockDelayUntil);
        return;
      case 'lock_delay_ended':
        lockDelayEnded(facts, body, databaseNow);
        return;
      case 'key_bound': {
        const { scope, key, leaseId, use, fingerprint } = body.binding;
        facts.bind(scope, key, leaseId, use, fingerprint);
        return;
      }
      case 'pattern_frozen':
        patternFrozen(facts, body);
        return;
      case 'pattern_thawed':
        patternThawed(facts, body, databaseNow);
        return;
      case 'database_identified':
        promise(
          !body.lostHistory || this.mayLoseHistory,
          'P2: history was lost, and nothing that could lose it happened',
        );
        if (body.lostHistory) historyLost(facts, databaseNow);
        return;
      default:
        return;
    }
  }
}
