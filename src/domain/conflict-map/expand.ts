import {
  type Access,
  type Allowance,
  type ExpandedEntry,
  later,
  type RequestedEntry,
  type RuleLock,
  type Scope,
  type Validation,
  type WriteSetRequest,
} from '../entry.js';
import { locksOf } from '../locks.js';
import { bindAtOrBelow, boundExactly, matchPattern, substitute } from '../pattern.js';
import { type Refusal, refuse } from '../refusal.js';
import { parseResource } from '../resource.js';
import type { Micros } from '../time.js';
import { ALLOWS_EVERYTHING, type Contract, contractOf } from './contract.js';
import { type Asked, type Judged, judgeImplied, judgeRequested } from './judge.js';
import {
  type ConflictMap,
  DEFAULT_TIMES,
  type EntryTemplate,
  type ImpliesRule,
  type Kind,
  resolveResource,
} from './map.js';
import { quoted } from './problems.js';
import { requestedBy } from './requested.js';
import { ruleLocksOf } from './rule-locks.js';

export interface ExpandBounds {
  /** Entries asked for. */
  readonly maxEntries: number;
  /** Locks after expansion. */
  readonly maxLocks: number;
}

/** Entries that rules may bring to one write set, however they imply each other. */
const MAX_IMPLIED = 1_024;

/** Times that rules may be followed for one write set, also where what they bring is there already. */
export const MAX_FOLLOWED = 16_384;

/** What `enforce` would have refused about an entry that is only observed (C14). */
export interface ObservedRefusal {
  /** Index of the entry. */
  readonly entry: number;
  readonly refusal: Refusal;
}

/** A write set after the map has been applied to it. */
export interface ExpandedWriteSet {
  /** Those asked for first, then the implied ones. */
  readonly entries: readonly ExpandedEntry[];
  readonly ruleLocks: readonly RuleLock[];
  /** Each the least of all kinds that are written or kept stable. */
  readonly ttl: Micros;
  readonly maxTtl: Micros;
  readonly maxHold: Micros;
  readonly progressWindow: Micros | null;
  /** A named resource set may not be had before this. */
  readonly notBefore: Micros | null;
  readonly observedRefusals: readonly ObservedRefusal[];
  /** Resources asked for that no kind matches, for the report of C14. */
  readonly unmatched: readonly string[];
}

export type ExpandResult =
  | { readonly ok: true; readonly writeSet: ExpandedWriteSet }
  | { readonly ok: false; readonly refusal: Refusal; readonly unmatched: readonly string[] };

/**
 * Applies the map and a run's contract to what the run asks for: the entries it would hold, those that
 * rules bring among them, and the locks of `conflicts` rules; or why it may not have them at all.
 * Whether they are free is not looked at here.
 */
export function expandWriteSet(
  map: ConflictMap,
  request: WriteSetRequest,
  contract: readonly Allowance[],
  bounds: ExpandBounds,
): ExpandResult {
  const asked = requestedBy(map, request, bounds.maxEntries);
  if (!asked.ok) return { ok: false, refusal: asked.refusal, unmatched: [] };
  const expansion = new Expansion(map, contractOf(contract), false);
  expansion.addRequested(asked.entries);
  if (expansion.refusal === null) expansion.close();
  if (expansion.refusal !== null) return { ok: false, refusal: expansion.refusal, unmatched: expansion.unmatched };
  const writeSet = expansion.writeSet(asked.notBefore, bounds.maxLocks);
  const tooMany = lockRefusal(writeSet, bounds.maxLocks);
  return tooMany === null ? { ok: true, writeSet } : { ok: false, refusal: tooMany, unmatched: [] };
}

/** What is answered all the same where a run would be refused, and the refusal beside it. */
export interface LenientExpansion {
  readonly writeSet: ExpandedWriteSet;
  readonly refusal: Refusal | null;
}

/** The same for a question about the map alone (explain, assertions, the matrix of tasks), under a contract that allows everything. */
export function expandForQuestion(map: ConflictMap, request: WriteSetRequest): LenientExpansion {
  return expandLeniently(map, request, ALLOWS_EVERYTHING, Number.POSITIVE_INFINITY);
}

/**
 * The same for what is held already, when the map has changed: going on where a run would be refused.
 * What is refused brings its locks, and no action.
 */
export function expandLeniently(
  map: ConflictMap,
  request: WriteSetRequest,
  contract: readonly Allowance[],
  maxLocks: number,
): LenientExpansion {
  const asked = requestedBy(map, request, Number.POSITIVE_INFINITY);
  const expansion = new Expansion(map, contractOf(contract), true);
  if (asked.ok) {
    expansion.addRequested(asked.entries);
    expansion.close();
  }
  const writeSet = expansion.writeSet(asked.ok ? asked.notBefore : null, Number.POSITIVE_INFINITY);
  const refusal = asked.ok ? expansion.refusal : asked.refusal;
  return { writeSet, refusal: refusal ?? lockRefusal(writeSet, maxLocks) };
}

/** An entry in the making. */
interface Draft {
  readonly resource: string;
  readonly segments: readonly string[];
  readonly access: Access;
  readonly scope: Scope;
  readonly kinds: readonly Kind[];
  readonly impliedBy: string;
  readonly mode: ExpandedEntry['mode'];
  readonly resolver: string;
  readonly observedRefusal: Refusal | null;
  actions: readonly string[];
  exclusive: boolean;
  observedVersion: string | null;
}

class Expansion {
  /** The first thing that speaks against the whole; null: nothing does. */
  refusal: Refusal | null = null;
  readonly unmatched: string[] = [];
  /** In order: those asked for, then the implied. One for each resource, access and scope. */
  private readonly drafts = new Map<string, Draft>();
  private implied = 0;
  private followed = 0;

  constructor(
    private readonly map: ConflictMap,
    private readonly contract: Contract,
    /** Goes on after a refusal, so that a question gets its answer all the same. */
    private readonly lenient: boolean,
  ) {}

  addRequested(entries: readonly RequestedEntry[]): void {
    for (const entry of entries) {
      if (this.stopped) return;
      const resolved = resolveResource(this.map, entry.resource);
      if (!resolved.ok) {
        this.refusal ??= notNormal(entry.resource, resolved.reason);
        continue;
      }
      const { resource } = resolved;
      const asked: Asked = {
        resource,
        segments: resource.split('/'),
        access: entry.access,
        scope: entry.scope,
        actions: entry.actions,
        rule: '',
      };
      const judged = judgeRequested(this.map, this.contract, asked);
      if (judged.kinds.length === 0) this.unmatched.push(resource);
      this.note(judged, judged.mode);
      this.put(asked, judged, judged.mode, entry.observedVersion);
    }
  }

  /**
   * Follows `implies` rules until nothing is added. What an observed entry brings is only observed as
   * well, or observing one kind would refuse by another; so enforced entries go first, and what both
   * bring is enforced.
   */
  close(): void {
    const observed: Draft[] = [];
    const enforced: Draft[] = [];
    const sort = (draft: Draft): number => (draft.mode === 'observe' ? observed : enforced).push(draft);
    for (const draft of this.drafts.values()) sort(draft);
    for (const queue of [enforced, observed]) {
      for (let next = queue.pop(); next !== undefined && !this.stopped; next = queue.pop()) {
        for (const added of this.follow(next)) sort(added);
      }
    }
  }

  writeSet(notBefore: Micros | null, maxRuleLocks: number): ExpandedWriteSet {
    const drafts = [...this.drafts.values()];
    const entries = drafts.map(entryOf);
    const observedRefusals: ObservedRefusal[] = [];
    for (const [entry, draft] of drafts.entries()) {
      if (draft.observedRefusal !== null) observedRefusals.push({ entry, refusal: draft.observedRefusal });
    }
    return {
      entries,
      ruleLocks: ruleLocksOf(this.map, entries, maxRuleLocks),
      ...timesOf(drafts),
      notBefore,
      observedRefusals,
      unmatched: this.unmatched,
    };
  }

  private get stopped(): boolean {
    return (this.refusal !== null && !this.lenient) || this.followed > MAX_FOLLOWED;
  }

  private note(judged: Judged, mode: ExpandedEntry['mode']): void {
    if (mode === 'enforce') this.refusal ??= judged.refusal;
  }

  /** Adds an entry, or merges it into the one of the same resource, access and scope; returns it when it is new. */
  private put(asked: Asked, judged: Judged, mode: ExpandedEntry['mode'], observedVersion: string | null): Draft | null {
    const id = draftId(asked.resource, asked.access, asked.scope);
    const present = this.drafts.get(id);
    if (present === undefined) {
      const draft: Draft = {
        resource: asked.resource,
        segments: asked.segments,
        access: asked.access,
        scope: asked.scope,
        kinds: judged.kinds,
        impliedBy: asked.rule,
        mode,
        resolver: judged.resolver,
        observedRefusal: mode === 'observe' ? judged.refusal : null,
        actions: judged.actions,
        exclusive: judged.exclusive,
        observedVersion,
      };
      this.drafts.set(id, draft);
      return draft;
    }
    const more = judged.actions.filter(
      (action) => !present.actions.includes(action) && !needsNaming(present, asked, action),
    );
    if (more.length > 0) present.actions = [...present.actions, ...more];
    present.exclusive ||= judged.exclusive;
    present.observedVersion ??= observedVersion;
    return null;
  }

  /** Adds what the rules say an entry touches; returns what is new. */
  private follow(draft: Draft): Draft[] {
    const index = this.map.impliesIndex[draft.access];
    if (index.size === 0) return [];
    const added: Draft[] = [];
    const rules = draft.scope === 'exact' ? index.all(draft.segments) : index.atOrBelow(draft.segments);
    for (const rule of rules) {
      for (const touch of rule.touches) {
        this.followed += 1;
        if (this.followed > MAX_FOLLOWED)
          this.refusal ??= ruleLimit(
            draft.resource,
            rule,
            `is one of those that are followed more than ${MAX_FOLLOWED.toLocaleString('en')} times`,
          );
        if (this.stopped) return added;
        const draftAdded = this.touch(draft, rule, touch);
        if (this.stopped) return added;
        if (draftAdded !== null) added.push(draftAdded);
      }
    }
    return added;
  }

  private touch(by: Draft, rule: ImpliesRule, touch: EntryTemplate): Draft | null {
    const exactly = by.scope === 'exact' ? matchPattern(rule.pattern, by.segments) : null;
    const captures = exactly === null ? bindAtOrBelow(rule.pattern, by.segments) : boundExactly(exactly);
    const made = captures === null ? null : substitute(touch.resource, captures);
    if (made === null) return null;
    if (made.kind === 'unbound') {
      this.refusal ??= tooWide(by.resource, rule, touch);
      return null;
    }
    const scope = made.kind === 'widened' ? 'subtree' : touch.scope;
    const present = this.drafts.has(draftId(made.resource, touch.access, scope));
    const flaw = present ? null : this.flawOf(made.resource, by, rule);
    if (flaw !== null) {
      this.refusal ??= flaw;
      return null;
    }
    const asked: Asked = {
      resource: made.resource,
      segments: made.resource.split('/'),
      access: touch.access,
      scope,
      actions: touch.actions,
      rule: rule.name,
    };
    const judged = judgeImplied(this.map, this.contract, asked);
    const mode = by.mode === 'observe' ? 'observe' : judged.mode;
    this.note(judged, mode);
    const refused = mode === 'enforce' && judged.refusal !== null;
    return this.put(asked, refused ? { ...judged, actions: [] } : judged, mode, null);
  }

  /** Why a rule may not add this resource: rules that feed themselves meet one of these bounds. */
  private flawOf(resource: string, by: Draft, rule: ImpliesRule): Refusal | null {
    const path = parseResource(resource);
    if (!path.ok) return ruleLimit(by.resource, rule, `makes a resource of which ${path.reason}`);
    if (this.implied >= MAX_IMPLIED)
      return ruleLimit(by.resource, rule, `would bring more than ${MAX_IMPLIED.toLocaleString('en')} implied entries`);
    this.implied += 1;
    return null;
  }
}

const draftId = (resource: string, access: Access, scope: Scope): string => `${access} ${scope} ${resource}`;

/** An explicit lease means asked for by name (W4): a rule never adds the authority to replace or delete a shared document. */
function needsNaming(present: Draft, asked: Asked, action: string): boolean {
  return (
    present.impliedBy === '' &&
    asked.rule !== '' &&
    present.kinds.some((kind) => kind.actions.get(action)?.changeClass === 'shared_document')
  );
}

function entryOf(draft: Draft): ExpandedEntry {
  const { resource, access, scope, actions, exclusive, impliedBy, mode, resolver, observedVersion } = draft;
  let validation: Validation = 'introspect';
  let maxViewAge = 0;
  for (const kind of draft.kinds) {
    validation = later(validation, kind.validation);
    maxViewAge = Math.max(maxViewAge, kind.maxViewAge);
  }
  return {
    resource,
    access,
    scope,
    actions,
    exclusive,
    impliedBy,
    mode,
    validation,
    maxViewAge,
    resolver,
    observedVersion,
  };
}

function timesOf(drafts: readonly Draft[]): Pick<ExpandedWriteSet, 'ttl' | 'maxTtl' | 'maxHold' | 'progressWindow'> {
  let ttl = Number.POSITIVE_INFINITY;
  let maxTtl = Number.POSITIVE_INFINITY;
  let maxHold = Number.POSITIVE_INFINITY;
  let progressWindow = Number.POSITIVE_INFINITY;
  for (const draft of drafts) {
    if (draft.access === 'read') continue;
    for (const kind of draft.kinds) {
      ttl = Math.min(ttl, kind.ttl);
      maxTtl = Math.min(maxTtl, kind.maxTtl);
      maxHold = Math.min(maxHold, kind.maxHold);
      progressWindow = Math.min(progressWindow, kind.progressWindow ?? Number.POSITIVE_INFINITY);
    }
  }
  const times = Number.isFinite(ttl) ? { ttl: Math.min(ttl, maxTtl), maxTtl, maxHold } : DEFAULT_TIMES;
  return { ...times, progressWindow: Number.isFinite(progressWindow) ? progressWindow : null };
}

function notNormal(text: string, reason: string): Refusal {
  return refuse(
    'undescribed',
    `${quoted(text)} is no resource: ${reason}.`,
    {
      action: 'Name the resource by its path: segments joined by "/", or an alias of the conflict map.',
      who: 'runner',
      retryable: false,
    },
    { resource: text },
  );
}

function tooWide(resource: string, rule: ImpliesRule, touch: EntryTemplate): Refusal {
  return refuse(
    'undescribed',
    `Below ${quoted(resource)}, rule ${rule.name} touches ${quoted(touch.resource.text)}, which could be anything.`,
    { action: 'Ask for a smaller subtree, or for single resources.', who: 'runner', retryable: false },
    { resource },
  );
}

function ruleLimit(resource: string, rule: ImpliesRule, what: string): Refusal {
  return refuse(
    'limit',
    `What ${quoted(resource)} touches has no end in sight: rule ${rule.name} ${what}.`,
    {
      action: `Have an admin look at rule ${rule.name} of the conflict map, or ask for less.`,
      who: 'admin',
      retryable: false,
    },
    { resource },
  );
}

function lockRefusal(writeSet: ExpandedWriteSet, maxLocks: number): Refusal | null {
  let atMost = writeSet.ruleLocks.length;
  for (const entry of writeSet.entries) atMost += 2 + (entry.resource.match(/\//g)?.length ?? 0);
  if (atMost <= maxLocks) return null;
  const locks = locksOf(writeSet.entries, writeSet.ruleLocks).length;
  if (locks <= maxLocks) return null;
  return refuse(
    'limit',
    `The write set needs ${locks} locks or more after expansion; at most ${maxLocks} are allowed.`,
    {
      action: 'Split the work into smaller write sets, or ask for a subtree instead of its resources.',
      who: 'runner',
      retryable: false,
    },
    { resource: writeSet.entries[0]?.resource ?? '' },
  );
}
