import { durationMs, timestampMicros } from '../clients/common/time.js';
import type { Duration } from '../gen/google/protobuf/duration.js';
import type { Timestamp } from '../gen/google/protobuf/timestamp.js';
import type { OpenWrite, WaitingPlace } from '../gen/writ/v1/lease_service.js';
import { type Run, RunState } from '../gen/writ/v1/run_service.js';
import {
  Access,
  type Blocker,
  EndReason,
  type Freeze,
  type Lease,
  type LeaseEntry,
  LeaseState,
  type Refusal,
  RefusalKind,
  Scope,
} from '../gen/writ/v1/types.js';
import { type Cell, clean, type Output } from './output.js';

/** An enum value in lower case without its prefix: `LEASE_STATE_ACTIVE` is `active`. */
function word(names: Readonly<Record<number, string>>, prefix: string, value: number): string {
  return (names[value] ?? `unknown (${value})`).replace(prefix, '').toLowerCase();
}

export const accessWord = (access: Access): string => word(Access, 'ACCESS_', access);
const leaseStateWord = (state: LeaseState): string => word(LeaseState, 'LEASE_STATE_', state);
export const endReasonWord = (reason: EndReason): string =>
  reason === 0 ? '' : word(EndReason, 'END_REASON_', reason);
export const runStateWord = (state: RunState): string => word(RunState, 'RUN_STATE_', state);
const refusalWord = (kind: RefusalKind): string => word(RefusalKind, 'REFUSAL_KIND_', kind);

/** `2026-12-01 10:00:00Z`; empty when it is absent. */
export function when(timestamp: Timestamp | undefined): string {
  const micros = timestampMicros(timestamp);
  return micros === undefined ? '' : momentText(micros);
}

/** A moment of the database clock, in whole seconds; beyond what a date can say, its number. */
export function momentText(micros: number): string {
  const date = new Date(Math.floor(micros / 1_000));
  return Number.isNaN(date.getTime())
    ? `${micros} µs`
    : date
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, 'Z');
}

/** `1 h 2 min`, `42 s`, `0.3 s`: two units at most. */
export function lasting(ms: number): string {
  if (ms < 10_000) return `${Math.max(0, Math.round(ms / 100) / 10)} s`;
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1_000],
  ] as const;
  const parts: string[] = [];
  let rest = ms;
  for (const [unit, size] of units) {
    const count = Math.floor(rest / size);
    if (count > 0 && parts.length < 2) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break;
    rest -= count * size;
  }
  return parts.join(' ');
}

/** `in 42 s`; empty when it is absent. */
export function within(duration: Duration | undefined): string {
  const ms = durationMs(duration);
  return ms === undefined ? '' : `in ${lasting(ms)}`;
}

/** `release/prod-eu`, or `tenant/1842 and below`. */
export function covered(resource: string, scope: Scope): string {
  return scope === Scope.SCOPE_SUBTREE ? `${resource} and below` : resource;
}

export function showLease(out: Output, lease: Lease): void {
  const state = leaseStateWord(lease.state);
  out.facts([
    ['lease', lease.leaseId],
    ['run', lease.runId],
    ['state', lease.state === LeaseState.LEASE_STATE_ENDED ? `${state} (${endReasonWord(lease.endReason)})` : state],
    [
      'expires',
      lease.state === LeaseState.LEASE_STATE_ACTIVE ? `${when(lease.expiresAt)} (${within(lease.expiresIn)})` : '',
    ],
    ['lives', ttlText(lease)],
    ['never beyond', when(lease.maxExpiresAt)],
    ['ended', when(lease.endedAt)],
    ['lock delay until', when(lease.lockDelayUntil)],
    ['part of', lease.delegatedFrom],
    ['purpose', lease.purpose],
    ['generation', String(lease.generation)],
  ]);
  out.line();
  showEntries(out, lease.entries);
}

/** How long a renewal lets it live; also that it is less than was asked for. */
function ttlText({ ttl, requestedTtl }: Lease): string {
  const [ms, askedMs] = [durationMs(ttl), durationMs(requestedTtl)];
  if (ms === undefined) return '';
  const lives = `${lasting(ms)} from a grant or renewal`;
  return askedMs === undefined ? lives : `${lives} (${cutText(askedMs)})`;
}

/** That a ttl was cut, and by what. */
export function cutText(askedMs: number): string {
  return `asked for ${lasting(askedMs)}; its kinds, or the ceiling of its run, allow no more: max_ttl`;
}

export function showEntries(out: Output, entries: readonly LeaseEntry[]): void {
  out.table(
    ['RESOURCE', 'ACCESS', 'ACTIONS', 'TOKEN', 'BY'],
    entries.map((entry) => [
      covered(entry.resource, entry.scope),
      entry.access === Access.ACCESS_WRITE
        ? `write${entry.exclusive ? ', alone' : ', optimistic'}`
        : accessWord(entry.access),
      entry.actions.join(', '),
      entry.fencingToken === 0n ? '' : entry.fencingToken.toString(),
      entry.impliedBy === '' ? 'asked for' : entry.impliedBy,
    ]),
  );
  for (const entry of entries) {
    if (entry.suspended) out.line(`${clean(entry.resource)} is suspended: a child run holds it, or some of it.`);
    if (entry.observedRefusal !== undefined) out.line(observedText(entry.resource, entry.observedRefusal));
  }
}

/** What a kind in observe mode would have refused. */
export function observedText(resource: string, refusal: string): string {
  return `${clean(resource)} is only observed; enforced, the answer would be: ${clean(refusal)}`;
}

/** Who holds what, until when, by which rule, and what to do. */
export function showRefusal(
  out: Output,
  refusal: Refusal,
  say: (text: string) => void = (text) => out.line(text),
): void {
  say(`${out.style(`refused (${refusalWord(refusal.kind)})`, 'red')}: ${refusal.message}`);
  const own = refusal.kind === RefusalKind.REFUSAL_KIND_ALREADY_HELD;
  for (const blocker of refusal.blockers)
    say(`  ${blockerText(blocker, own ? 'another lease of this run' : undefined)}`);
  for (const freeze of refusal.freezes) say(`  ${freezeText(freeze)}`);
  if (refusal.cycle.length > 0) say(`  cycle: ${refusal.cycle.join(' → ')}`);
  if (refusal.grantable.length > 0) {
    say(`  could be granted now: ${refusal.grantable.map((entry) => covered(entry.resource, entry.scope)).join(', ')}`);
  }
  const retryAfter = durationMs(refusal.retryAfter);
  if (retryAfter !== undefined) say(`  free at the earliest in ${lasting(retryAfter)}`);
  if (refusal.resolution !== undefined) {
    const { retryable } = refusal.resolution;
    say(`  what to do: ${whatToDo(refusal)}${retryable ? ' The same request can succeed later.' : ''}`);
  }
}

/** The API words it for all clients; here waiting is an option, and who decides about a stuck holder is nobody who waits. */
function whatToDo({ kind, resolution, grantable }: Refusal): string {
  const { action = '', who = '' } = resolution ?? {};
  if (kind === RefusalKind.REFUSAL_KIND_HELD && action.includes('(set wait)')) {
    const part = grantable.length === 0 ? '' : ', or ask for the part that could be granted now';
    const decides = who === '' || who === 'runner' ? 'an operator' : who;
    return `wait for it (--wait 5m), or ask again later${part}. If the holder is stuck, ${decides} decides.`;
  }
  return `${action.replace('(set wait)', '(--wait)')}${who === '' ? '' : ` (${who})`}`;
}

/** One sentence about what stands in the way. */
export function blockerText(blocker: Blocker, whose?: string): string {
  const { runId, purpose, resolver, rule, requestedResource } = blocker;
  const who =
    whose !== undefined
      ? whose
      : runId === ''
        ? `another run (${blocker.blockerRef})`
        : `run ${runId}${purpose === '' ? '' : ` ("${purpose}")`}`;
  const over = blocker.lockDelayUntil !== undefined || blocker.inDoubtSince !== undefined;
  const does = blocker.waiting ? 'waits ahead of you for' : over ? 'held' : 'holds';
  const parts = [`${who} ${does} ${covered(blocker.resource, blocker.scope)} (${accessWord(blocker.access)})`];
  if (blocker.expiresAt !== undefined) parts.push(`until ${when(blocker.expiresAt)} unless renewed`);
  if (blocker.lockDelayUntil !== undefined)
    parts.push(`closed to others until ${when(blocker.lockDelayUntil)} (lock delay)`);
  if (blocker.inDoubtSince !== undefined)
    parts.push(`of whose write nobody knows since ${when(blocker.inDoubtSince)} whether it happened (in doubt)`);
  if (requestedResource !== '' && requestedResource !== blocker.resource)
    parts.push(`which meets ${requestedResource}`);
  if (rule !== '') parts.push(`by rule ${rule}`);
  if (resolver !== '') parts.push(`settled by ${resolver}`);
  return parts.join(', ');
}

/** One sentence about what keeps everybody from it. */
function freezeText(freeze: Freeze): string {
  const by = freeze.frozenBy === '' ? 'an operator' : freeze.frozenBy;
  const until = freeze.until === undefined ? 'until it is thawed' : `until ${when(freeze.until)}`;
  const why = freeze.reason === '' ? '' : `: "${freeze.reason}"`;
  return `${by} has frozen ${covered(freeze.pattern, freeze.scope)} since ${when(freeze.frozenAt)}, ${until}${why}`;
}

export function waitingText(place: WaitingPlace): string {
  const inTheWay = [...place.freezes.map(freezeText), ...place.waitsFor.map((blocker) => blockerText(blocker))];
  const ahead = inTheWay.map((text) => `\n  ${text}`).join('');
  const earliest = durationMs(place.earliestAfter);
  const soonest = earliest === undefined ? '' : `, free at the earliest in ${lasting(earliest)}`;
  return `waiting, place ${place.place}, until ${when(place.waitsUntil)}${soonest}${ahead}`;
}

export function showRun(out: Output, run: Run): void {
  out.facts([
    ['run', run.runId],
    ['state', stateCell(run)],
    ['may write', run.mayWrite ? 'yes' : 'no'],
    ['purpose', run.purpose],
    ['goal revision', run.goalRevision],
    ['principal', run.principal],
    ['parent run', run.parentRunId],
    ['initiator', run.initiator === '' ? '' : `${run.initiator}${run.initiatorVerified ? '' : ' (not verified)'}`],
    ['authority ends', when(run.authorityEndsAt)],
    ['created', when(run.createdAt)],
    ['ended', when(run.endedAt)],
    ['escalation', run.escalation.join(' → ')],
    ['live leases', String(run.liveLeases)],
    ['waiting requests', String(run.waitingRequests)],
  ]);
  out.line();
  if (run.allowed.length === 0) out.line('It may write nothing.');
  out.table(
    ['MAY', 'ACTIONS'],
    run.allowed.map(({ pattern, actions }) => [pattern, actions.join(', ')]),
  );
  showOpenWrites(out, run.openWrites);
}

export function showRuns(out: Output, runs: readonly Run[]): void {
  out.table(
    ['RUN', 'STATE', 'MAY WRITE', 'PRINCIPAL', 'LEASES', 'WAITING', 'AUTHORITY ENDS', 'PURPOSE'],
    runs.map((run) => [
      run.runId,
      stateCell(run),
      run.mayWrite ? 'yes' : 'no',
      run.principal,
      String(run.liveLeases),
      String(run.waitingRequests),
      when(run.authorityEndsAt),
      short(run.purpose),
    ]),
  );
}

function stateCell(run: Run): Cell {
  const text =
    run.stateReason === '' ? runStateWord(run.state) : `${runStateWord(run.state)} (${short(run.stateReason)})`;
  if (run.state === RunState.RUN_STATE_ACTIVE) return { text, style: 'green' };
  return run.endedAt === undefined ? { text, style: 'yellow' } : text;
}

export function showLeases(out: Output, leases: readonly Lease[]): void {
  out.table(
    ['LEASE', 'RUN', 'STATE', 'EXPIRES', 'RESOURCES', 'PURPOSE'],
    leases.map((lease) => [
      lease.leaseId,
      lease.runId,
      lease.endReason === 0 ? leaseStateWord(lease.state) : `ended (${endReasonWord(lease.endReason)})`,
      lease.state === LeaseState.LEASE_STATE_ACTIVE ? within(lease.expiresIn) : '',
      several(lease.entries.map((entry) => covered(entry.resource, entry.scope))),
      short(lease.purpose),
    ]),
  );
}

/** What operators have frozen; who and why is told to some only. */
export function showFreezes(out: Output, freezes: readonly Freeze[], heading = 'FROZEN'): void {
  out.table(
    [heading, 'CHECKS', 'SINCE', 'UNTIL', 'BY', 'REASON'],
    freezes.map((freeze) => [
      covered(freeze.pattern, freeze.scope),
      freeze.denyChecks ? 'denied' : 'allowed',
      when(freeze.frozenAt),
      freeze.until === undefined ? 'thawed' : when(freeze.until),
      freeze.frozenBy,
      short(freeze.reason),
    ]),
  );
}

/** What an end means: for targets that ask at once, for those that do not when the last credential is dead. */
export function inForce(effectiveAt: Timestamp | undefined): string {
  return `no check allows its tokens any more, and from ${when(effectiveAt)} no target accepts its credentials`;
}

/** Writes that were let in and whose outcome nobody has reported (R4). */
export function showOpenWrites(out: Output, writes: readonly OpenWrite[]): void {
  if (writes.length === 0) return;
  out.line();
  out.line(out.style('Unresolved: these writes were let in, and nobody has said what became of them.', 'yellow'));
  out.table(
    ['WRITE', 'RESOURCE', 'ACTION', 'TARGET', 'REQUEST', 'LET IN', 'IN DOUBT SINCE'],
    writes.map((write) => [
      write.admissionId,
      write.resource,
      write.action,
      write.target,
      write.requestId,
      when(write.admittedAt),
      when(write.inDoubtSince),
    ]),
  );
}

export function several(texts: readonly string[], most = 3): string {
  const more = texts.length - most;
  return more > 0 ? `${texts.slice(0, most).join(', ')} and ${more} more` : texts.join(', ');
}

/** `1 lease`, `2 leases`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function short(text: string, most = 60): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
