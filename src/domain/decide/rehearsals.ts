import { type ConflictMap, type Kind, kindOf, kindsOf, pathNamed } from '../conflict-map/index.js';
import type { ExpandedEntry } from '../entry.js';
import { Fault, invalidArgument } from '../fault.js';
import { type Refusal, refuse } from '../refusal.js';
import {
  basisOf,
  isBeingRehearsed,
  MAX_REHEARSED_KINDS,
  type Rehearsal,
  type RehearsalWindow,
  type RehearsedCase,
  whatIsLacking,
  whyNotRehearsed,
} from '../rehearsal.js';
import type { State } from '../state.js';
import type { Micros } from '../time.js';
import type { Decision } from './decision.js';
import { runNotFound } from './run-guard.js';

/** Rehearsals of targets (C13): begun, recorded, and demanded. */

/** Who says it: an admin, or a target that owns the kind. */
interface Recorder {
  /** Null: an admin, of any kind. */
  readonly target: string | null;
}

export interface BeginRehearsalCommand extends Recorder {
  readonly resources: readonly string[];
  readonly runIds: readonly string[];
  readonly within: Micros;
  readonly requestIds: readonly string[];
}

/** BeginRehearsal: for a while these runs may have exactly these resources, though their kinds are not rehearsed. */
export function decideBeginRehearsal(decision: Decision, command: BeginRehearsalCommand): { until: Micros } {
  const { state, now } = decision;
  const until = now + command.within;
  const windows = new Map<string, RehearsalWindow>();
  for (const [index, text] of command.resources.entries()) {
    const { kind, resource } = kindToRehearse(state.map, text, `resources[${index}]`, command);
    const pattern = kind.pattern.text;
    const resources = [...(windows.get(pattern)?.resources ?? []), resource];
    windows.set(pattern, { resources, runIds: command.runIds, until });
  }
  for (const runId of command.runIds) if (decision.run(runId) === undefined) throw runNotFound(runId);
  makeRoom(state, [...windows.keys()]);
  const resources = [...windows.values()].flatMap((window) => window.resources);
  decision.emit(
    { kind: 'rehearsal_begun', windows: [...windows].map(([pattern, window]) => ({ pattern, window })) },
    { resources, requestIds: command.requestIds },
  );
  return { until };
}

export interface RecordRehearsalCommand extends Recorder {
  readonly resource: string;
  readonly targetName: string;
  readonly suiteVersion: string;
  readonly digest: string;
  readonly cases: readonly RehearsedCase[];
  readonly validFor: Micros;
  readonly requestIds: readonly string[];
}

/** RecordRehearsal: the newest result of a kind counts, a bad one too; the suite's window is closed by it. */
export function decideRecordRehearsal(
  decision: Decision,
  command: RecordRehearsalCommand,
): { kind: Kind; rehearsal: Rehearsal } {
  const { state, now } = decision;
  const { kind, resource } = kindToRehearse(state.map, command.resource, 'resource', command);
  const pattern = kind.pattern.text;
  makeRoom(state, [pattern]);
  const rehearsal: Rehearsal = {
    resource,
    target: command.targetName,
    suiteVersion: command.suiteVersion,
    digest: command.digest,
    cases: command.cases,
    lacks: whatIsLacking(kind, command.cases),
    basis: basisOf(kind),
    recordedBy: decision.actor,
    recordedAt: now,
    validUntil: now + command.validFor,
  };
  decision.emit(
    { kind: 'rehearsal_recorded', pattern, rehearsal },
    { resources: [resource], requestIds: command.requestIds },
  );
  return { kind, rehearsal };
}

function kindToRehearse(
  map: ConflictMap,
  text: string,
  field: string,
  { target }: Recorder,
): { kind: Kind; resource: string } {
  const resource = pathNamed(map, field, text);
  const kind = kindOf(map, resource);
  if (kind === null)
    throw invalidArgument([
      { field, description: 'no kind of the conflict map matches it, so there is nothing to rehearse' },
    ]);
  if (target !== null && kind.ownerService.length > 0 && !kind.ownerService.includes(target))
    throw new Fault(
      'permission_denied',
      'NOT_OWNER_SERVICE',
      `The kind ${JSON.stringify(kind.pattern.text)} is owned by ${kind.ownerService.join(', ')}, and its rehearsals are recorded by these, or by an admin.`,
      { metadata: { kind: kind.pattern.text } },
    );
  return { kind, resource };
}

/** Records of kinds that the map does not have any more stay, in case it has them again; hence a bound. */
function makeRoom(state: State, patterns: readonly string[]): void {
  const fresh = patterns.filter((pattern) => state.rehearsals.get(pattern) === undefined).length;
  if (fresh === 0 || state.rehearsals.size + fresh <= MAX_REHEARSED_KINDS) return;
  throw new Fault(
    'resource_exhausted',
    'TOO_MANY_REHEARSALS',
    `Rehearsals of ${MAX_REHEARSED_KINDS} kinds are kept in this namespace; nothing was recorded. Use fewer patterns.`,
  );
}

/**
 * Why authority to write is not given for want of a rehearsal; null: nothing stands against it. What a grant relies on,
 * that a result is not too old yet, is noted.
 */
export function rehearsalRefusal(decision: Decision, entries: readonly ExpandedEntry[], runId: string): Refusal | null {
  if (!decision.state.map.demandsRehearsal) return null;
  for (const entry of entries) {
    if (entry.mode !== 'enforce') continue;
    const refusal = unrehearsed(decision, entry, runId);
    if (refusal !== null) return refusal;
  }
  return null;
}

/** The same of one entry, whether its kind is enforced or observed. A rule that only reserves gives no authority. */
export function unrehearsed(decision: Decision, entry: ExpandedEntry, runId: string): Refusal | null {
  const { state, now } = decision;
  if (!state.map.demandsRehearsal || entry.access !== 'write' || entry.actions.length === 0) return null;
  const { resource, scope } = entry;
  for (const kind of kindsOf(state.map, { resource, segments: resource.split('/'), scope })) {
    if (!kind.requiresRehearsal || (entry.mode === 'enforce' && kind.mode === 'observe')) continue;
    const known = state.rehearsals.get(kind.pattern.text);
    const why = whyNotRehearsed(kind, known?.last ?? null, now);
    if (why === '') decision.relyOnFuture(known?.last?.validUntil ?? now);
    else if (scope === 'exact' && isBeingRehearsed(known?.window ?? null, resource, runId, now))
      decision.relyOnFuture(known?.window?.until ?? now);
    else return rehearsalRequired(kind, resource, why);
  }
  return null;
}

function rehearsalRequired(kind: Kind, resource: string, why: string): Refusal {
  return refuse(
    'rehearsal_required',
    `The kind ${JSON.stringify(kind.pattern.text)} of ${JSON.stringify(resource)} demands that its target was rehearsed, and ${why}.`,
    {
      action:
        'Rehearse the target and record the result: writ rehearse --target URL --config FILE --record. Mend what it finds first.',
      who: kind.ownerService[0] ?? 'admin',
      retryable: false,
    },
    { resource },
  );
}
