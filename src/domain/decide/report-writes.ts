import { type Admission, isInDoubt, isOpen, type ReportedWrite } from '../admission.js';
import { isTracked, kindOf, pathNamed } from '../conflict-map/index.js';
import { locksOfDoubt } from '../doubt.js';
import { Fault, invalidArgument } from '../fault.js';
import type { Lease } from '../lease.js';
import { covers } from '../resource.js';
import { openWritesUnder } from '../state.js';
import { checkId, type Decision } from './decision.js';
import { endIfResolved } from './ending.js';
import { grantWaiters } from './granting.js';

/** One write of a report, as told: by the id of its admission, or by resource and action of its check. */
export type ToldWrite = Omit<ReportedWrite, 'contradicts'> & {
  /** Where it is in the request, for what is wrong with it. */
  readonly field: string;
};

export interface ReportCommand {
  /** The principal that reports. */
  readonly target: string;
  /** Of the check. Empty: each write names its admission. */
  readonly leaseId: string;
  readonly requestId: string;
  readonly detail: string;
  readonly writes: readonly ToldWrite[];
  readonly requestIds: readonly string[];
}

/** What a report did about one write. */
export type ReportOutcome =
  /** The admission is closed: its outcome is known. */
  | 'closed'
  /** Written down; there is no admission, or it stays open as its target does not know either. */
  | 'recorded'
  /** The same was known before. */
  | 'already_known'
  /** Another outcome was known before, and holds; this one is written down for people. */
  | 'contradicts';

/** A write of a report, and what is known of it. */
interface Found {
  readonly told: ToldWrite;
  /** Null: its action is not tracked, and no check left anything of it. */
  readonly admission: Admission | null;
}

/**
 * ReportWrite: what became of the writes of one check, tracked or not (A1, W6). Closes admissions, also long after their
 * lease ended; whoever waited for what was in doubt is granted it in the same append, and a run that is stopping has
 * stopped once nothing of it is open (R4). All or nothing. A repeated report about an admission changes
 * nothing; of an untracked write there is nothing to know it by, and each report is another event.
 */
export function decideReportWrites(decision: Decision, command: ReportCommand): ReportOutcome[] {
  const found = command.writes.map((told) => find(decision, command, told));
  refuseMixed(found, command);
  const outcomes = found.map(outcomeOf);
  const news = found.filter((_, index) => outcomes[index] !== 'already_known');
  const [first] = news;
  if (first === undefined) return outcomes;
  const { leaseId, runId } = first.admission ?? lease(decision, command.leaseId);
  const requestId = first.admission?.requestId ?? command.requestId;
  const freed = news.flatMap(({ told, admission }) =>
    admission !== null && isInDoubt(admission) && told.result !== 'unknown'
      ? locksOfDoubt(decision.state.map, admission)
      : [],
  );
  const writes = news.map(({ told, admission }): ReportedWrite => {
    const { field: _, ...write } = told;
    const { resource, action } = admission ?? pathOf(decision, told);
    const contradicts = admission !== null && outcomeOf({ told, admission }) === 'contradicts';
    return { ...write, admissionId: admission?.admissionId ?? '', resource, action, contradicts };
  });
  decision.emit(
    { kind: 'writes_reported', target: command.target, requestId, detail: command.detail, writes },
    {
      runId,
      leaseId,
      resources: [...new Set(writes.map(({ resource }) => resource))],
      requestIds: [...new Set([requestId, ...command.requestIds])].filter((id) => id !== ''),
    },
  );
  grantWaiters(decision, freed);
  endIfResolved(decision, runId, command.requestIds);
  return outcomes;
}

function find(decision: Decision, command: ReportCommand, told: ToldWrite): Found {
  const admission = told.admissionId === '' ? byCheck(decision, command, told) : decision.admission(told.admissionId);
  if (admission === undefined && told.admissionId !== '') throw unknownAdmission(told.admissionId);
  const found = { told, admission: admission ?? null };
  if (found.admission === null) refuseUncovered(decision, command, told);
  else if (!mayReport(decision, found.admission, command.target)) throw notItsTarget(found.admission.resource);
  return found;
}

/** The open one; else the one that was closed last, by which a repeated report is known. What only others were let in for is not its to report. */
function byCheck(decision: Decision, command: ReportCommand, told: ToldWrite): Admission | undefined {
  const { leaseId, requestId, target } = command;
  const { runId } = lease(decision, leaseId);
  const { resource, action } = pathOf(decision, told);
  const isMeant = (admission: Admission): boolean =>
    admission.resource === resource && admission.action === action && admission.requestId === requestId;
  const open = openWritesUnder(decision.state, { runId, leaseId }).filter(isMeant);
  const own = open.find((admission) => mayReport(decision, admission, target));
  if (own !== undefined || requestId === '' || !isTracked(decision.state.map, resource, action)) return own;
  const all = decision.admissionsOf({ leaseId, requestId }).filter(isMeant);
  const reportable = all.filter((admission) => mayReport(decision, admission, target));
  if (reportable.length === 0 && all.length > 0) throw notItsTarget(resource);
  return reportable.reduce<Admission | undefined>(
    (last, one) => (last === undefined || one.admittedAt > last.admittedAt ? one : last),
    undefined,
  );
}

/** The target that was let in, or one that the map names as an owner of the resource. */
function mayReport(decision: Decision, { resource, target }: Admission, caller: string): boolean {
  return caller === target || ownersOf(decision, resource).includes(caller);
}

function ownersOf(decision: Decision, resource: string): readonly string[] {
  return kindOf(decision.state.map, resource)?.ownerService ?? [];
}

function outcomeOf({ told, admission }: Found): ReportOutcome {
  if (admission === null) return 'recorded';
  if (isOpen(admission)) {
    if (told.result !== 'unknown') return 'closed';
    return admission.unsure ? 'already_known' : 'recorded';
  }
  // Whoever said earlier that it did not know adds nothing to what is known since.
  return told.result === 'unknown' || told.result === admission.outcome?.result ? 'already_known' : 'contradicts';
}

function lease(decision: Decision, leaseId: string): Lease {
  const known = decision.lease(leaseId);
  if (known !== undefined && known.grantedAt !== null) return known;
  throw new Fault(
    'not_found',
    'LEASE_NOT_FOUND',
    'Nothing was recorded: no lease of this id was ever granted. Ids are compared letter by letter, lower case.',
    { metadata: { lease_id_prefix: leaseId.slice(0, 8) } },
  );
}

function pathOf(decision: Decision, told: ToldWrite): { resource: string; action: string } {
  return { resource: pathNamed(decision.state.map, `${told.field}.resource`, told.resource), action: told.action };
}

/** Nobody writes what a lease could not have done into the history of its run. */
function refuseUncovered(decision: Decision, command: ReportCommand, told: ToldWrite): void {
  const { resource, action } = pathOf(decision, told);
  const owners = ownersOf(decision, resource);
  if (owners.length > 0 && !owners.includes(command.target)) throw notItsTarget(resource);
  const covered = lease(decision, command.leaseId).entries.some(
    (entry) => entry.access === 'write' && entry.actions.includes(action) && covers(entry, resource),
  );
  if (covered) return;
  throw new Fault(
    'failed_precondition',
    'NOT_COVERED',
    `Nothing was recorded: the lease never covered ${action} on ${JSON.stringify(resource)}, so no check can have allowed it.`,
    { metadata: { resource, action } },
  );
}

/** One event is about one check, and each of its writes once. */
function refuseMixed(found: readonly Found[], command: ReportCommand): void {
  const checks = new Set(found.map(({ admission }) => checkId(admission ?? command)));
  if (checks.size > 1)
    throw invalidArgument([{ field: 'writes', description: 'must be of one check: one lease and one request id' }]);
  const seen = new Set<string>();
  for (const { told, admission } of found) {
    if (admission === null) continue;
    if (seen.has(admission.admissionId))
      throw invalidArgument([{ field: told.field, description: 'names a write a second time' }]);
    seen.add(admission.admissionId);
  }
}

function unknownAdmission(admissionId: string): Fault {
  return new Fault(
    'not_found',
    'ADMISSION_NOT_FOUND',
    'Nothing was recorded: no check left an admission of this id, or its run was purged.',
    { metadata: { admission_id: admissionId } },
  );
}

function notItsTarget(resource: string): Fault {
  return new Fault(
    'permission_denied',
    'WRONG_TARGET',
    `Nothing was recorded: writes to ${JSON.stringify(resource)} are reported by the target that was let in, or by an owner service that the conflict map names.`,
    { metadata: { resource } },
  );
}
