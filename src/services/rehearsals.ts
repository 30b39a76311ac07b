import type { Kind } from '../domain/conflict-map/index.js';
import type { View } from '../domain/decide/decision.js';
import { decideBeginRehearsal, decideRecordRehearsal } from '../domain/decide/rehearsals.js';
import {
  type KindRehearsal,
  MAX_VALIDITY,
  MAX_WINDOW,
  MIN_VALIDITY,
  MIN_WINDOW,
  whyNotRehearsed,
} from '../domain/rehearsal.js';
import type { Micros } from '../domain/time.js';
import type { At, CallContext, Page, Paged, RecordRehearsalInput, RehearsalView } from './api.js';
import { type Deps, engineOf, hasRole, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';
import { pagesOf } from './pages.js';

const pages = pagesOf('rehearsals');

/** Rehearsals of targets (C13). */

const MAX_RESOURCES = 16;
const MAX_CASES = 64;
const CASE_NAME = /^(?=.{1,64}$)[a-z][a-z0-9_]*(?::[a-z][a-z0-9_]*)?$/;

/** BeginRehearsal: for a while the suite's runs, and they alone, may have what it rehearses on. */
export async function beginRehearsal(
  deps: Deps,
  context: CallContext,
  input: { resources: readonly string[]; runIds: readonly string[]; within: Micros },
): Promise<At<{ until: Micros }>> {
  const { resources, runIds, within } = input;
  const checks = new FieldChecks();
  checkCount(checks, 'resources', resources, MAX_RESOURCES);
  checkCount(checks, 'run_ids', runIds, MAX_RESOURCES);
  for (const [index, resource] of resources.slice(0, MAX_RESOURCES).entries())
    checks.text(`resources[${index}]`, resource, 2_048, true);
  for (const [index, runId] of runIds.slice(0, MAX_RESOURCES).entries()) checks.id(`run_ids[${index}]`, runId);
  checks.between('within', within, MIN_WINDOW, MAX_WINDOW);
  checks.done();
  const engine = await engineOf(deps, context);
  const command = { resources, runIds, within, target: targetOf(context), requestIds: requestIds(context.requestId) };
  return engine.submit(context.principal.name, (decision) => decideBeginRehearsal(decision, command));
}

/** RecordRehearsal: the newest result of a kind counts. */
export async function recordRehearsal(
  deps: Deps,
  context: CallContext,
  input: RecordRehearsalInput,
): Promise<At<RehearsalView>> {
  const checks = new FieldChecks();
  checks.text('resource', input.resource, 2_048, true);
  checks.printable('target_name', input.targetName, true);
  checks.printable('suite_version', input.suiteVersion, true);
  if (!/^[0-9a-f]{64}$/.test(input.digest)) checks.reject('result_digest', 'must be 64 lower-case hexadecimal digits');
  checkCases(checks, input.cases);
  checks.between('valid_for', input.validFor, MIN_VALIDITY, MAX_VALIDITY);
  checks.done();
  const engine = await engineOf(deps, context);
  const command = { ...input, target: targetOf(context), requestIds: requestIds(context.requestId) };
  return engine.submit(context.principal.name, (decision) => {
    const { kind, rehearsal } = decideRecordRehearsal(decision, command);
    return viewOf(kind, { pattern: kind.pattern.text, last: rehearsal, window: null }, decision.now);
  });
}

/** ListRehearsals: of kinds that have one, or demand one. */
export async function listRehearsals(
  deps: Deps,
  context: CallContext,
  input: { page: Page },
): Promise<Paged<RehearsalView>> {
  const { size, after } = pages.asked(input.page);
  const engine = await engineOf(deps, context);
  const { value: rows } = await engine.read((view) =>
    allOf(view)
      .filter(({ pattern }) => pattern > after)
      .sort((a, b) => (a.pattern < b.pattern ? -1 : 1)),
  );
  return pages.cut(rows, size, ({ pattern }) => pattern);
}

function allOf({ state, now }: View): RehearsalView[] {
  const kinds = new Map(state.map.kinds.map((kind) => [kind.pattern.text, kind]));
  const missing = [...kinds.values()]
    .filter((kind) => kind.requiresRehearsal && state.rehearsals.get(kind.pattern.text) === undefined)
    .map((kind): KindRehearsal => ({ pattern: kind.pattern.text, last: null, window: null }));
  return [...state.rehearsals.values(), ...missing].map((known) => viewOf(kinds.get(known.pattern), known, now));
}

function viewOf(kind: Kind | undefined, known: KindRehearsal, now: Micros): RehearsalView {
  const whyNot =
    kind === undefined ? 'the conflict map has no such kind any more' : whyNotRehearsed(kind, known.last, now);
  const openUntil = known.window !== null && now < known.window.until ? known.window.until : null;
  return { ...known, required: kind?.requiresRehearsal === true, whyNot, openUntil };
}

/** Null: an admin, who may speak for any kind. */
function targetOf(context: CallContext): string | null {
  return hasRole(context, 'admin') ? null : context.principal.name;
}

function checkCount(checks: FieldChecks, field: string, given: readonly unknown[], most: number): void {
  if (given.length < 1 || given.length > most) checks.reject(field, `must be 1 to ${most}`);
}

function checkCases(checks: FieldChecks, cases: RecordRehearsalInput['cases']): void {
  checkCount(checks, 'cases', cases, MAX_CASES);
  const seen = new Set<string>();
  for (const [index, { name }] of cases.slice(0, MAX_CASES).entries()) {
    if (!CASE_NAME.test(name)) checks.reject(`cases[${index}].name`, 'must be 1 to 64 of a-z, 0-9, _ and one colon');
    else if (seen.has(name)) checks.reject(`cases[${index}].name`, `${name} is there already`);
    seen.add(name);
  }
}
