import type { Admission } from '../admission.js';
import { Fault, invalidArgument } from '../fault.js';
import type { ProtectedWrite } from '../fence.js';
import type { Lease } from '../lease.js';
import { endsAt } from '../lease.js';
import type { Run } from '../run.js';
import { openWritesOf, type State } from '../state.js';
import type { Micros } from '../time.js';
import type { Decision } from './decision.js';

/** A tracked write of an allowed check; its resource is a path. */
export interface TrackedWrite extends ProtectedWrite {
  /** Of its resource in the request, for what is wrong with it. */
  readonly field: string;
  /** Random; used if this check lets it in. */
  readonly freshAdmissionId: string;
}

export interface AdmitCommand {
  readonly lease: Lease;
  readonly run: Run;
  /** The principal that asks. */
  readonly target: string;
  /** By which a repeated check is known (design: unknown outcomes). */
  readonly requestId: string;
  /** What the credential that was presented ends by; null: none was. */
  readonly credentialEnds: Micros | null;
  readonly writes: readonly TrackedWrite[];
  readonly requestIds: readonly string[];
}

/**
 * The admissions that a check already has, in the order of its writes; null: it has not been let in. A write that was
 * reported is done with: the same request id then stands for another attempt, which must not go unseen (R4).
 */
export function knownAdmissions(
  state: State,
  { lease, target, requestId, writes }: Pick<AdmitCommand, 'lease' | 'target' | 'requestId' | 'writes'>,
): Admission[] | null {
  const open = openWritesOf(state, lease.runId).filter(
    (admission) =>
      admission.leaseId === lease.leaseId && admission.target === target && admission.requestId === requestId,
  );
  if (open.length === 0) return null;
  const isMeant = (admission: Admission, write: ProtectedWrite): boolean =>
    admission.resource === write.resource && admission.action === write.action;
  const same = (admission: Admission): boolean =>
    writes.some(
      (write) =>
        isMeant(admission, write) &&
        // The lease may have been given a newer one for the resource since.
        admission.token <= write.token &&
        admission.observedVersion === write.observedVersion,
    );
  if (!open.every(same)) throw requestIdReused(requestId);
  const found = writes.flatMap((write) => open.find((admission) => isMeant(admission, write)) ?? []);
  return found.length === writes.length ? found : null;
}

/**
 * Lets tracked writes of an allowed check in: their admission is in the log before the check is answered, and proves that
 * lease, authority and credential had not ended (P3, P5). Returns the admissions' ids in the order of the writes.
 */
export function decideAdmitWrites(decision: Decision, command: AdmitCommand): string[] {
  const { lease, run, target, requestId, credentialEnds, writes, requestIds } = command;
  refuseUnnamed(command);
  const known = knownAdmissions(decision.state, command);
  if (known !== null) return known.map(({ admissionId }) => admissionId);
  const before = openWritesOf(decision.state, run.runId);
  refuseBeyondBounds(decision, before.length, writes.length);
  decision.relyOnFuture(endsAt(lease));
  decision.relyOnFuture(run.authorityEndsAt);
  if (credentialEnds !== null) decision.relyOnFuture(credentialEnds);
  const admissionIds = writes.map((write) => idFor(write, before, command));
  const fresh = writes.filter(({ freshAdmissionId }) => admissionIds.includes(freshAdmissionId));
  decision.emit(
    {
      kind: 'writes_admitted',
      target,
      requestId,
      writes: fresh.map(({ freshAdmissionId: admissionId, resource, action, token, observedVersion }) => ({
        admissionId,
        resource,
        action,
        token,
        observedVersion,
      })),
    },
    {
      runId: run.runId,
      leaseId: lease.leaseId,
      resources: [...new Set(fresh.map(({ resource }) => resource))],
      requestIds,
    },
  );
  return admissionIds;
}

/** Of a check that was partly reported, what is open keeps its admission. */
function idFor(write: TrackedWrite, open: readonly Admission[], { lease, target, requestId }: AdmitCommand): string {
  const known = open.find(
    (admission) =>
      admission.leaseId === lease.leaseId &&
      admission.target === target &&
      admission.requestId === requestId &&
      admission.resource === write.resource &&
      admission.action === write.action,
  );
  return known?.admissionId ?? write.freshAdmissionId;
}

/** What could not be told apart afterwards is not let in. */
function refuseUnnamed({ requestId, writes }: AdmitCommand): void {
  if (requestId === '') {
    const tracked = writes.map(({ resource, action }) => `${action} on ${JSON.stringify(resource)}`).slice(0, 4);
    const description = `is required, unique for each attempt: the conflict map tracks ${tracked.join(', ')}`;
    throw invalidArgument([{ field: 'request_id', description }]);
  }
  const seen = new Set<string>();
  for (const { field, resource, action } of writes) {
    const name = `${resource}\n${action}`;
    if (seen.has(name)) {
      const description = 'names a tracked write a second time; ask for each write once';
      throw invalidArgument([{ field, description }]);
    }
    seen.add(name);
  }
}

function refuseBeyondBounds({ state, bounds }: Decision, ofRun: number, more: number): void {
  const { maxOpenWrites, maxOpenWritesPerRun } = bounds;
  const perRun = ofRun + more > maxOpenWritesPerRun;
  if (!perRun && state.openWrites + more <= maxOpenWrites) return;
  const [what, limit] = perRun ? ['of the run', maxOpenWritesPerRun] : ['of the namespace', maxOpenWrites];
  throw new Fault(
    'resource_exhausted',
    'OPEN_WRITES_LIMIT',
    `The write is refused: ${limit} tracked writes ${what} may be open at a time. Report what became of those that were let in (ReportWrite), or have an operator settle them (writ in-doubt list).`,
    { metadata: { limit: String(limit) } },
  );
}

function requestIdReused(requestId: string): Fault {
  return new Fault(
    'already_exists',
    'REQUEST_ID_REUSED',
    `The request id ${JSON.stringify(requestId)} has let in other writes that are still open; use a new one for each attempt.`,
    { metadata: { request_id: requestId } },
  );
}
