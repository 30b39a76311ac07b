import { createHash } from 'node:crypto';
import {
  type Fence,
  type FenceClosed,
  type FenceEnded,
  type FenceEntry,
  FenceReason,
  type FenceRenewed,
  type FenceSnapshot,
  type FenceUpdate,
  type WatchedKind,
} from '../../gen/writ/v1/fence_service.js';
import { Access, Scope } from '../../gen/writ/v1/types.js';
import { isResource, PathIndex, parseTemplate, ResourcePattern, type Step } from '../../route-table/index.js';
import { durationMs, timestampMicros } from '../common/time.js';
import type { FenceHolder, FenceQuestion, WriteDecision } from './check.js';

/**
 * The fences as a watch has told of them, and the rule by which they allow a write: that of the coordinator's own check
 * (P4), at the last place of the log that was reached. Pure but for the digests: what the time is, is for the caller to
 * say.
 */

/** A kind that matches a resource. */
interface ViewKind {
  readonly steps: readonly Step[];
  readonly decides: boolean;
  readonly maxViewAgeMs: number;
  readonly observes: boolean;
  readonly tracked: ReadonlySet<string>;
}

interface HeldEntry {
  readonly resource: string;
  readonly actions: readonly string[];
  readonly token: bigint;
  readonly exclusive: boolean;
  readonly implied: boolean;
  readonly withheld: boolean;
  /** Its place among the entries of the lease: the first that fits counts. */
  readonly order: number;
  /** Of its own resource. */
  readonly kind: ViewKind | null;
  /** What a write that it allows is answered; made once, as they come by the million. */
  allows: WriteDecision | null;
}

/** A live lease. What changes of it is changed in place: it is found by the lease id, too. */
interface HeldFence {
  readonly digest: string;
  /** Known once it was presented. */
  leaseId: string | null;
  runId: string;
  /** Microseconds on the database clock. */
  endsAt: number;
  exact: ReadonlyMap<string, HeldEntry>;
  subtrees: readonly HeldEntry[];
  holder: FenceHolder | null;
}

interface EndedFence {
  readonly runId: string;
  readonly reason: string;
}

/** What the time is, as far as it is known. */
export interface ViewTime {
  /** The latest that the database clock can say, in microseconds. */
  readonly databaseNow: number;
  /** How old what was told is at most; Infinity: nothing was ever proved. */
  readonly ageMs: number;
}

/** Reasons for which only the coordinator can tell. */
export type NotByView =
  /** Nothing is known yet, or not any more. */
  | 'view_not_ready'
  /** What is known is older than the kind's `max_view_age`. */
  | 'view_too_old'
  /** The resource's kind has another validation or other owners, or there is none. */
  | 'view_does_not_decide'
  /** An allowed check of it leaves an admission. */
  | 'view_tracked_action';

export interface TableDecision {
  readonly allowed: boolean;
  /** The reason is as in the contract, in lower case, or one of NotByView. */
  readonly writes: readonly WriteDecision[];
  /** The live lease that was presented. */
  readonly fence: { readonly holder: FenceHolder; readonly endsAt: number } | null;
}

type PresentedWrite = FenceQuestion['writes'][number];

/** Ends of which the reason is still known; of older ones the lease is simply unknown. */
const ENDS_KEPT = 10_000;

const ACTION_LISTS_SHARED = 10_000;

const NOT_BY_VIEW: Readonly<Record<NotByView, string>> = {
  view_not_ready: 'Nothing is known here of the fences yet.',
  view_too_old: "What is known here of the fences is older than the kind's max_view_age.",
  view_does_not_decide: 'It is not decided by a view: ask the coordinator.',
  view_tracked_action: 'The action is tracked, and a view leaves no admission: ask the coordinator.',
};

/** More fences were told of than there is room for. */
export class TooManyFences extends Error {
  override readonly name = 'TooManyFences';
}

/** As the coordinator tells it of a lease id; as text of one character for each byte. */
export function digestOf(leaseId: string): string {
  return createHash('sha256').update(leaseId, 'utf8').digest('binary');
}

/** What one snapshot began, and all that was told since. */
class Told {
  readonly kinds = new PathIndex<ViewKind>();
  readonly fences = new Map<string, HeldFence>();
  readonly ended = new Map<string, EndedFence>();
  readonly inDoubt = new Set<string>();
  /** By scope and pattern. */
  readonly frozen = new Map<string, { readonly pattern: ResourcePattern; readonly below: boolean }>();
  readonly maxClockSkew: number;
  /** Lists of actions, each once: there are few, and many entries. */
  readonly actions = new Map<string, readonly string[]>();

  constructor({ maxClockSkew }: Pick<FenceSnapshot, 'maxClockSkew'>) {
    this.maxClockSkew = (durationMs(maxClockSkew) ?? 0) * 1_000;
  }
}

export class FenceTable {
  /** What decides. */
  private told: Told | null = null;
  /** A snapshot that is not complete yet. */
  private coming: Told | null = null;
  /** By what is presented. */
  private readonly byLeaseId = new Map<string, HeldFence>();
  private leastViewAge = Number.POSITIVE_INFINITY;

  constructor(private readonly maxFences: number) {}

  /** Live leases that are known. */
  get size(): number {
    return this.told?.fences.size ?? 0;
  }

  /** The smallest greatest age of any kind that is decided here; Infinity: none is. */
  get leastViewAgeMs(): number {
    return this.leastViewAge;
  }

  /** Forgets everything: nothing is decided before the next snapshot. */
  forget(): void {
    this.told = null;
    this.coming = null;
    this.byLeaseId.clear();
  }

  /** A snapshot under way will not be completed. */
  interrupted(): void {
    this.coming = null;
  }

  /** Takes what was told over; that a place was reached completes a snapshot. */
  apply(update: NonNullable<FenceUpdate['update']>): void {
    if (update.$case === 'snapshot') {
      this.coming = new Told(update.value);
      return;
    }
    if (update.$case === 'reached' || update.$case === 'mark') {
      if (this.coming !== null) this.complete(this.coming);
      return;
    }
    const told = this.coming ?? this.told;
    if (told === null) return;
    switch (update.$case) {
      case 'kind':
        addKind(told, update.value);
        return;
      case 'fence':
        this.put(told, update.value);
        return;
      case 'renewed':
        renew(told, update.value);
        return;
      case 'ended':
        this.end(told, update.value);
        return;
      case 'closed':
        close(told, update.value);
    }
  }

  /** The coordinator's rule, as of what was told. */
  check(question: Pick<FenceQuestion, 'leaseId' | 'presenterRunId' | 'writes'>, time: ViewTime): TableDecision {
    const { told } = this;
    const { leaseId = '', presenterRunId = '', writes } = question;
    if (told === null) {
      return { allowed: false, writes: writes.map(() => notByView('view_not_ready')), fence: null };
    }
    const fence = this.find(told, leaseId);
    const whole = leaseReason(fence, presenterRunId, time.databaseNow);
    const decisions: WriteDecision[] = [];
    let allowed = writes.length > 0;
    for (const write of writes) {
      const decision = judge(told, fence, whole, write, time);
      decisions.push(decision);
      allowed &&= decision.allowed;
    }
    if (!isHeld(fence) || whole !== 'ok') return { allowed, writes: decisions, fence: null };
    fence.holder ??= { runId: fence.runId, leaseId, expiresAt: new Date(fence.endsAt / 1_000) };
    return { allowed, writes: decisions, fence: fence as HeldFence & { holder: FenceHolder } };
  }

  private find(told: Told, leaseId: string): HeldFence | EndedFence | null {
    const known = this.byLeaseId.get(leaseId);
    if (known !== undefined) return known;
    if (leaseId === '') return null;
    const digest = digestOf(leaseId);
    const fence = told.fences.get(digest);
    if (fence === undefined) return told.ended.get(digest) ?? null;
    fence.leaseId = leaseId;
    this.byLeaseId.set(leaseId, fence);
    return fence;
  }

  private complete(coming: Told): void {
    this.told = coming;
    this.coming = null;
    this.byLeaseId.clear();
    this.leastViewAge = leastViewAge(coming);
  }

  private put(told: Told, { leaseDigest, runId, endsAt, entries }: Fence): void {
    const digest = Buffer.from(leaseDigest).toString('latin1');
    const known = told.fences.get(digest);
    if (known === undefined && told.fences.size >= this.maxFences)
      throw new TooManyFences(
        `more than ${this.maxFences} live leases were told of; nothing is decided by a part of them`,
      );
    const fence: HeldFence = known ?? {
      digest,
      leaseId: null,
      runId,
      endsAt: 0,
      exact: new Map(),
      subtrees: [],
      holder: null,
    };
    const { exact, subtrees } = heldEntries(told, entries);
    Object.assign(fence, { runId, endsAt: timestampMicros(endsAt) ?? 0, exact, subtrees, holder: null });
    told.fences.set(digest, fence);
  }

  private end(told: Told, { leaseDigest, reason }: FenceEnded): void {
    const digest = Buffer.from(leaseDigest).toString('latin1');
    const fence = told.fences.get(digest);
    if (fence === undefined) return;
    told.fences.delete(digest);
    if (fence.leaseId !== null) this.byLeaseId.delete(fence.leaseId);
    told.ended.set(digest, { runId: fence.runId, reason: wordOf(reason) });
    if (told.ended.size <= ENDS_KEPT) return;
    for (const oldest of told.ended.keys()) {
      told.ended.delete(oldest);
      return;
    }
  }
}

function isHeld(fence: HeldFence | EndedFence | null): fence is HeldFence {
  return fence !== null && 'exact' in fence;
}

function addKind(told: Told, { pattern, decides, maxViewAge, observes, trackedActions }: WatchedKind): void {
  const parsed = parseTemplate(pattern);
  // One that cannot be read here is of no use, and neither is any other then (P8).
  if (!parsed.ok) throw new TypeError(`the kind ${JSON.stringify(pattern)} cannot be read: ${parsed.reason}`);
  const maxViewAgeMs = durationMs(maxViewAge) ?? 0;
  told.kinds.add({ steps: parsed.steps, decides, maxViewAgeMs, observes, tracked: new Set(trackedActions) });
}

function leastViewAge({ kinds }: Told): number {
  let least = Number.POSITIVE_INFINITY;
  for (const { decides, maxViewAgeMs } of kinds.values()) if (decides) least = Math.min(least, maxViewAgeMs);
  return least;
}

function heldEntries(told: Told, entries: readonly FenceEntry[]): Pick<HeldFence, 'exact' | 'subtrees'> {
  const exact = new Map<string, HeldEntry>();
  const subtrees: HeldEntry[] = [];
  for (const [order, entry] of entries.entries()) {
    if (entry.access !== Access.ACCESS_WRITE) continue;
    const { resource, fencingToken: token, exclusive, implied, withheld } = entry;
    const kind = told.kinds.find(resource.split('/'));
    const actions = sharedActions(told, entry.actions);
    const held = { resource, actions, token, exclusive, implied, withheld, order, kind, allows: null };
    if (entry.scope === Scope.SCOPE_SUBTREE) subtrees.push(held);
    else exact.set(resource, held);
  }
  return { exact, subtrees };
}

function sharedActions({ actions }: Told, list: readonly string[]): readonly string[] {
  const name = list.join(' ');
  const known = actions.get(name);
  if (known === undefined && actions.size < ACTION_LISTS_SHARED) actions.set(name, list);
  return known ?? list;
}

function renew(told: Told, { leaseDigest, endsAt }: FenceRenewed): void {
  const fence = told.fences.get(Buffer.from(leaseDigest).toString('latin1'));
  if (fence === undefined) return;
  fence.endsAt = timestampMicros(endsAt) ?? fence.endsAt;
  fence.holder = null;
}

/** Why the lease as a whole allows nothing; `ok` when it may allow something. */
function leaseReason(fence: HeldFence | EndedFence | null, presenterRunId: string, databaseNow: number): string {
  if (fence === null) return 'unknown_lease';
  if (presenterRunId !== '' && presenterRunId !== fence.runId) return 'wrong_holder';
  if (!isHeld(fence)) return fence.reason;
  return fence.endsAt <= databaseNow ? 'expired' : 'ok';
}

function judge(
  told: Told,
  fence: HeldFence | EndedFence | null,
  whole: string,
  write: PresentedWrite,
  { databaseNow, ageMs }: ViewTime,
): WriteDecision {
  const { resource, action, token = 0n } = write;
  const own = isHeld(fence) ? fence.exact.get(resource) : undefined;
  const kind = own?.kind ?? told.kinds.find(resource.split('/'));
  if (kind === null || !kind.decides) return notByView('view_does_not_decide');
  if (kind.tracked.has(action)) return notByView('view_tracked_action');
  if (!(ageMs <= kind.maxViewAgeMs)) return notByView('view_too_old');
  if (token > databaseNow + told.maxClockSkew) return denied('future_token', false);
  const judged = whole === 'ok' && isHeld(fence) ? authority(told, fence, own, write) : whole;
  if (typeof judged !== 'string') return judged;
  return denied(judged, kind.observes);
}

function authority(
  told: Told,
  fence: HeldFence,
  own: HeldEntry | undefined,
  write: PresentedWrite,
): WriteDecision | string {
  const { resource, action, token = 0n, observedVersion } = write;
  const covering = coveringOf(fence, own, resource);
  if (covering.length === 0) return 'not_covered';
  let found: HeldEntry | undefined;
  let hasAction = false;
  let explicit = false;
  for (const entry of covering) {
    if (!entry.actions.includes(action)) continue;
    hasAction = true;
    if (entry.token !== token) continue;
    if (found === undefined || comesBefore(entry, found)) found = entry;
    explicit ||= isExplicit(entry, resource);
  }
  if (!hasAction) return 'action_not_allowed';
  if (found === undefined || found.withheld) {
    for (const entry of covering) {
      if (!entry.actions.includes(action) || !isHeldBy(entry, token, covering)) continue;
      if (found === undefined || comesBefore(entry, found)) found = entry;
      explicit ||= isExplicit(entry, resource);
    }
  }
  if (found === undefined) return 'stale_token';
  if (found.withheld) return 'not_covered';
  if (!found.exclusive && observedVersion === undefined) return 'version_required';
  if (told.frozen.size > 0 && isFrozen(told, resource)) return 'frozen';
  if (told.inDoubt.has(resource)) return 'in_doubt';
  const newest = covering.length === 1 ? token : newestOf(covering);
  if (found.allows?.explicit !== explicit || found.allows.token !== newest)
    found.allows = allowing(newest, found.exclusive, explicit);
  return found.allows;
}

/** For the guard, as the coordinator says. */
function newestOf(covering: readonly HeldEntry[]): bigint {
  return covering.reduce((newest, { token, withheld }) => (!withheld && token > newest ? token : newest), 0n);
}

function isExplicit({ exclusive, implied, withheld, resource }: HeldEntry, asked: string): boolean {
  return exclusive && !implied && resource === asked && !withheld;
}

/** By its own token, or by a newer one that the same lease has for the resource, as the guard has it. */
function isHeldBy(entry: HeldEntry, token: bigint, covering: readonly HeldEntry[]): boolean {
  if (entry.token === token) return true;
  return entry.token < token && covering.some((other) => other.token === token && !other.withheld);
}

/** One that holds counts before one that is withheld; else the first. */
function comesBefore(a: HeldEntry, b: HeldEntry): boolean {
  return a.withheld === b.withheld ? a.order < b.order : b.withheld;
}

/** What is no path in normal form is below nothing. */
function coveringOf({ subtrees }: HeldFence, own: HeldEntry | undefined, resource: string): readonly HeldEntry[] {
  if (subtrees.length === 0) return own === undefined ? [] : [own];
  const covering = subtrees.filter((entry) => covers(entry, resource));
  if (own !== undefined) covering.push(own);
  else if (covering.length > 0 && !isResource(resource)) return [];
  return covering;
}

function close(told: Told, { resource, scope, reason, closed }: FenceClosed): void {
  const below = scope === Scope.SCOPE_SUBTREE;
  if (reason === FenceReason.FENCE_REASON_IN_DOUBT) {
    if (closed) told.inDoubt.add(resource);
    else told.inDoubt.delete(resource);
    return;
  }
  const name = `${below} ${resource}`;
  if (closed) told.frozen.set(name, { pattern: ResourcePattern.of(resource), below });
  else told.frozen.delete(name);
}

/** Its time may be over, and that be told a little later: then the coordinator says so. */
function isFrozen({ frozen }: Told, resource: string): boolean {
  const segments = resource.split('/');
  for (const { pattern, below } of frozen.values()) {
    for (let length = below ? 1 : segments.length; length <= segments.length; length += 1)
      if (pattern.matches(segments.slice(0, length).join('/'))) return true;
  }
  return false;
}

function covers({ resource }: HeldEntry, path: string): boolean {
  return path === resource || path.startsWith(`${resource}/`);
}

function allowing(token: bigint, exclusive: boolean, explicit: boolean): WriteDecision {
  const message = '';
  return { allowed: true, reason: 'ok', message, observedOnly: false, token, exclusive, explicit, admissionId: '' };
}

/** A kind that only observes lets it in all the same (C14). */
function denied(reason: string, observedOnly: boolean, message = `By what is known here of the fences: ${reason}.`) {
  const nothing = { token: undefined, exclusive: false, explicit: false, admissionId: '' } as const;
  return { allowed: observedOnly, reason, message, observedOnly, ...nothing };
}

/** What a view says where only the coordinator can tell. */
export function notByView(reason: NotByView): WriteDecision {
  return denied(reason, false, NOT_BY_VIEW[reason]);
}

function wordOf(reason: FenceReason): string {
  return (FenceReason[reason] ?? 'FENCE_REASON_UNSPECIFIED').replace('FENCE_REASON_', '').toLowerCase();
}
