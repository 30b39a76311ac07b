import type { DomainEvent, EventBody } from '../../../../src/domain/event.js';
import type { Micros } from '../../../../src/domain/time.js';
import { mayWrite } from '../fence-check.js';
import { promise } from '../violation.js';
import type { Facts, OpenWrite } from './facts.js';

export function writesAdmitted(
  facts: Facts,
  event: DomainEvent,
  body: Extract<EventBody, { kind: 'writes_admitted' }>,
  databaseNow: Micros,
): void {
  for (const { admissionId, resource, action, token, observedVersion } of body.writes) {
    const { leaseId, runId } = event;
    promise(!facts.admitted.has(admissionId), `R4: ${admissionId} is let in twice`);
    facts.admitted.add(admissionId);
    promise(facts.isLive(leaseId, databaseNow), `P3: a write was let in under ${leaseId}, which is over`);
    const authority = facts.run(runId).authorityEndsAt;
    promise(authority > databaseNow, `P5: a write was let in after the end of the authority of ${runId}`);
    const lease = { ...facts.lease(leaseId), live: true };
    const write = { resource, action, token, observedVersion };
    promise(mayWrite(lease, runId, write), `P4: a write to ${resource} was let in that ${leaseId} does not cover`);
    facts.openWrites.set(admissionId, { runId, leaseId, resource });
  }
}

export function writesReported(facts: Facts, body: Extract<EventBody, { kind: 'writes_reported' }>): void {
  for (const { admissionId, result, contradicts } of body.writes)
    if (admissionId !== '' && result !== 'unknown' && !contradicts) closed(facts, admissionId);
}

export function doubtSettled(facts: Facts, body: Extract<EventBody, { kind: 'doubt_settled' }>): void {
  const open = closed(facts, body.admissionId);
  promise(facts.lease(open.leaseId).state === 'ended', `R4: ${body.admissionId} was settled while its lease lives`);
}

function closed(facts: Facts, admissionId: string): OpenWrite {
  const open = facts.openWrites.get(admissionId);
  promise(open !== undefined, `R4: the outcome of ${admissionId} became known, which is not open`);
  facts.openWrites.delete(admissionId);
  return open;
}

/** R4, after an append: only what has no open write has ended. */
export function endedRunsAreResolved(facts: Facts): void {
  for (const { runId, resource } of facts.openWrites.values()) {
    const { ended } = facts.run(runId);
    promise(!ended, `R4: run ${runId} has ended, and nobody knows what became of its write to ${resource}`);
  }
  for (const [runId, run] of facts.runs) {
    const open =
      [...facts.openWrites.values()].some((write) => write.runId === runId) ||
      [...facts.runs.values()].some((child) => child.parentRunId === runId && !child.ended);
    promise(run.state !== 'stopping' || open, `R4: run ${runId} is stopping, and nothing of it is open`);
  }
}
