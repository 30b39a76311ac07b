import { MAX_CREDENTIAL_BYTES } from '../auth/credentials.js';
import { decideReportWrites, type ReportOutcome } from '../domain/decide/report-writes.js';
import { invalidArgument } from '../domain/fault.js';
import type { At, CallContext, ReportWriteInput } from './api.js';
import { type Deps, engineOf, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';

const MAX_WRITES = 256;
const MAX_FIELDS = 64;
const MAX_TEXT_BYTES = 256;

/** ReportWrite: what became of the writes of one check (A1, W6), by the target that was let in. */
export async function reportWrite(
  deps: Deps,
  context: CallContext,
  input: ReportWriteInput,
): Promise<At<readonly ReportOutcome[]>> {
  checkFields(input);
  const engine = await engineOf(deps, context);
  const leaseId = input.credential === '' ? input.leaseId : await leaseOf(deps, context, input.credential);
  const command = {
    target: context.principal.name,
    leaseId,
    requestId: input.requestId,
    detail: input.detail,
    writes: input.writes.map((write, index) => ({ ...write, field: `writes[${index}]` })),
    requestIds: requestIds(context.requestId),
  };
  return engine.submit(context.principal.name, (decision) => decideReportWrites(decision, command));
}

function checkFields(input: ReportWriteInput): void {
  const checks = new FieldChecks();
  const { leaseId, credential, writes } = input;
  if (leaseId !== '' && credential !== '') checks.reject('lease_id', 'give at most one of lease_id and credential');
  const named = writes.every(({ admissionId }) => admissionId !== '');
  if (leaseId === '' && credential === '' && !named)
    checks.reject('lease_id', 'is required, or credential, or an admission_id for each write');
  if (credential.length > MAX_CREDENTIAL_BYTES)
    checks.reject('credential', `must be at most ${MAX_CREDENTIAL_BYTES} bytes`);
  checks.printable('lease_id', leaseId, false);
  checks.printable('request_id', input.requestId, false);
  checks.text('detail', input.detail, 1_024);
  if (writes.length < 1 || writes.length > MAX_WRITES) checks.reject('writes', `must be 1 to ${MAX_WRITES}`);
  else writes.forEach((write, index) => checkWrite(checks, `writes[${index}]`, write));
  checks.done();
}

function checkWrite(checks: FieldChecks, field: string, write: ReportWriteInput['writes'][number]): void {
  if (write.admissionId !== '') checks.id(`${field}.admission_id`, write.admissionId);
  else {
    if (write.resource === '') checks.reject(`${field}.resource`, 'is required without admission_id');
    checks.action(`${field}.action`, write.action);
  }
  checks.text(`${field}.resource`, write.resource, 2_048);
  for (const [name, version] of [
    ['observed_version', write.observedVersion],
    ['new_version', write.newVersion],
  ] as const)
    if (version !== null) checks.text(`${field}.${name}`, version, MAX_TEXT_BYTES);
  if (write.changedFields.length > MAX_FIELDS)
    checks.reject(`${field}.changed_fields`, `must be at most ${MAX_FIELDS}`);
  else
    write.changedFields.forEach((name, index) =>
      checks.text(`${field}.changed_fields[${index}]`, name, MAX_TEXT_BYTES, true),
    );
}

/** Of the credential of the check: whose signature counts, and which may have ended since. */
async function leaseOf(deps: Deps, context: CallContext, token: string): Promise<string> {
  const verified = await deps.credentials.verify(token);
  const reason = verified.ok
    ? verified.claims.aud !== context.principal.name
      ? 'it is for another target'
      : verified.claims.lease_id === undefined
        ? 'it is for no lease'
        : null
    : verified.reason;
  if (reason !== null || !verified.ok)
    throw invalidArgument([{ field: 'credential', description: `is none of a check: ${reason}` }]);
  return verified.claims.lease_id ?? '';
}
