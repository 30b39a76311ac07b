import type { MatchedWrite } from '../../route-table/index.js';
import type { FenceDecision, WriteDecision } from './check.js';
import type { Credential } from './credential.js';
import type { AllowedWrite, AllowedWrites, Asked, GateDecision, Refused } from './gate-decision.js';
import { deniedBy, type GateRefusal, nothingPresented } from './gate-problems.js';
import type { Override } from './override.js';

/** How each of those who may let a write in says so: the coordinator, a credential that was verified here, a person. */

/** A refusal as an answer of the gate. */
export function refused(requestId: string, refusal: GateRefusal): Refused {
  return { allowed: false, requestId, ...refusal };
}

/** The coordinator's verdict, or that of a view of what it decides by. */
export function byVerdict(
  asked: Asked,
  decision: FenceDecision,
  decidedBy: 'coordinator' | 'view',
  credential?: Credential,
): GateDecision {
  const { presented, writes } = asked;
  const { requestId } = presented;
  if (!decision.allowed) {
    const refusal =
      presented.authority.kind === 'none'
        ? nothingPresented(writes[0], requestId)
        : deniedBy(decision, writes, requestId);
    return refused(requestId, refusal);
  }
  const { holder, validUntil, logRevision } = decision;
  return allowedWrites(asked, {
    decidedBy,
    writes: writes.map((write, index) => letIn(write, decision.writes[index] ?? ALLOWED)),
    runId: holder?.runId ?? '',
    leaseId: holder?.leaseId ?? '',
    expiresAt: holder?.expiresAt,
    validUntil,
    logRevision,
    credential,
  });
}

/**
 * What a credential that was verified here says, when nobody is asked; null: its write set is too large for it, and only
 * the coordinator can tell.
 */
export function byCredential(asked: Asked, credential: Credential, namespace: string): GateDecision | null {
  const { presented, writes, request } = asked;
  const runId = request.caller?.runId;
  const foreign = runId !== undefined && runId !== credential.runId;
  const decisions: WriteDecision[] = [];
  for (const { resource, action } of writes) {
    const answer = credential.covers({ resource, action });
    if (!answer.allowed && answer.reason === 'digest_needs_check') return null;
    if (credential.namespace !== namespace)
      decisions.push(denied('unknown_lease', 'The credential is for another namespace.'));
    else if (foreign)
      decisions.push(denied('wrong_holder', 'The credential belongs to another run than the presenter.'));
    else if (!answer.allowed) decisions.push(denied(answer.reason, answer.message));
    else if (answer.versionRequired && presented.observedVersion === undefined)
      decisions.push(
        denied('version_required', `The action ${action} on ${resource} must carry the version that was read.`),
      );
    else decisions.push({ ...ALLOWED, token: answer.fencingToken, exclusive: !answer.versionRequired });
  }
  if (decisions.some(({ allowed }) => !allowed))
    return refused(
      presented.requestId,
      deniedBy({ writes: decisions, reason: '', message: '' }, writes, presented.requestId),
    );
  return allowedWrites(asked, {
    decidedBy: 'credential',
    writes: writes.map((write, index) => letIn(write, decisions[index] ?? ALLOWED)),
    runId: credential.runId,
    leaseId: credential.leaseId ?? '',
    expiresAt: new Date(credential.expiresAt * 1_000),
    credential,
  });
}

function letIn(
  write: MatchedWrite,
  { token, exclusive, explicit, observedOnly, reason, admissionId }: WriteDecision,
): AllowedWrite {
  return { ...write, token, exclusive, explicit, observedOnly, reason, admissionId };
}

const ALLOWED: WriteDecision = {
  allowed: true,
  reason: 'ok',
  message: '',
  observedOnly: false,
  token: undefined,
  exclusive: false,
  explicit: false,
  admissionId: '',
};

const denied = (reason: string, message: string): WriteDecision => ({ ...ALLOWED, allowed: false, reason, message });

type Decided = Pick<AllowedWrites, 'decidedBy' | 'writes' | 'runId'> &
  Partial<Pick<AllowedWrites, 'leaseId' | 'expiresAt' | 'validUntil' | 'logRevision' | 'credential' | 'override'>>;

function allowedWrites({ presented, route }: Asked, decided: Decided): AllowedWrites {
  const { runId, expiresAt, override } = decided;
  return {
    allowed: true,
    kind: 'writes',
    requestId: presented.requestId,
    route,
    leaseId: '',
    expiresAt: undefined,
    validUntil: undefined,
    logRevision: undefined,
    observedVersion: presented.observedVersion,
    credential: undefined,
    override: undefined,
    ...decided,
    toGuard: decided.writes.flatMap(({ resource, action, token, exclusive, changeClass, resolver }) => {
      if (token === undefined) return [];
      const holder = override === undefined ? runId : `override:${override.id}`;
      const until = expiresAt === undefined ? {} : { expiresAt };
      return [{ resource, action, token, exclusive, changeClass, resolver, runId: holder, ...until }];
    }),
  };
}

/**
 * A person's write goes by the guard like everybody's, with a token of this moment: later than any granted before, so
 * that what runs still have under way is refused there, and earlier than any granted after.
 */
export function byOverride(asked: Asked, override: Override, now: number): AllowedWrites {
  const token = BigInt(now) * 1_000n;
  return allowedWrites(asked, {
    decidedBy: 'override',
    writes: asked.writes.map((write) => ({
      ...write,
      token,
      exclusive: true,
      explicit: false,
      observedOnly: false,
      reason: 'ok',
      admissionId: '',
    })),
    runId: '',
    expiresAt: override.until,
    override,
  });
}
