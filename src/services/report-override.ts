import { decideReportOverride } from '../domain/decide/report-override.js';
import type { At, CallContext, WritApi } from './api.js';
import { type Deps, engineOf, fingerprint, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';

type ReportOverrideInput = Parameters<WritApi['reportOverride']>[1];

/** ReportOverride: a local override at a target, or one use of it, as an event of the log (C12). */
export async function reportOverride(
  deps: Deps,
  context: CallContext,
  input: ReportOverrideInput,
): Promise<At<{ alreadyReported: boolean }>> {
  checkFields(input);
  const engine = await engineOf(deps, context);
  const command = { ...input, fingerprint: fingerprint(input), requestIds: requestIds(context.requestId) };
  return engine.submit(context.principal.name, (decision) => decideReportOverride(decision, command));
}

function checkFields({ overrideId, who, why, until, patterns, use }: ReportOverrideInput): void {
  const checks = new FieldChecks();
  checks.printable('override_id', overrideId, true);
  checks.text('who', who, 256, true);
  checks.text('why', why, 1_024, true);
  if (until <= 0) checks.reject('until', 'is required');
  if (patterns.length < 1 || patterns.length > 32) checks.reject('patterns', 'must be 1 to 32');
  else patterns.forEach((pattern, index) => checks.text(`patterns[${index}]`, pattern, 2_048, true));
  if (use !== null) {
    checks.printable('use.request_id', use.requestId, true);
    if (use.useId !== undefined) checks.printable('use.use_id', use.useId, true);
    if (use.usedAt <= 0) checks.reject('use.used_at', 'is required');
    if (use.writes.length < 1 || use.writes.length > 256) checks.reject('use.writes', 'must be 1 to 256');
    else
      use.writes.forEach((write, index) => {
        const field = `use.writes[${index}]`;
        checks.text(`${field}.resource`, write.resource, 2_048, true);
        checks.action(`${field}.action`, write.action);
        if (write.observedVersion !== null) checks.text(`${field}.observed_version`, write.observedVersion, 256);
      });
  }
  checks.done();
}
