import type { Access, ExpandedEntry, Scope } from '../entry.js';
import { bindAtOrBelow, substitute } from '../pattern.js';
import { deciding } from '../pattern-index.js';
import { type Refusal, refuse } from '../refusal.js';
import { type Contract, permissionOn } from './contract.js';
import type { ConflictMap, Kind, KindAction } from './map.js';
import { didYouMean, editDistance, listed, quoted } from './problems.js';

/** What is asked about one entry, or brought by a rule. */
export interface Asked {
  readonly resource: string;
  readonly segments: readonly string[];
  readonly access: Access;
  readonly scope: Scope;
  readonly actions: readonly string[];
  /** The rule that brought it; empty: it was asked for. */
  readonly rule: string;
}

/** What the map and the contract say about one entry. */
export interface Judged {
  readonly kinds: readonly Kind[];
  readonly mode: ExpandedEntry['mode'];
  readonly actions: readonly string[];
  readonly exclusive: boolean;
  readonly resolver: string;
  /** Null: nothing speaks against it. */
  readonly refusal: Refusal | null;
}

/** Subtrees whose kinds are remembered in a map. */
const MAX_REMEMBERED = 4_096;

/** The kinds that decide about an entry: the most specific one of its resource, or all that decide about something at or below it. */
export function kindsOf(map: ConflictMap, asked: Pick<Asked, 'resource' | 'segments' | 'scope'>): readonly Kind[] {
  if (asked.scope === 'exact') {
    const kind = map.kindIndex.best(asked.segments);
    return kind === undefined ? [] : [kind];
  }
  const known = map.subtreeKinds.get(asked.resource);
  if (known !== undefined) return known;
  const kinds = deciding(map.kindIndex, asked.segments);
  if (map.subtreeKinds.size >= MAX_REMEMBERED) map.subtreeKinds.clear();
  map.subtreeKinds.set(asked.resource, kinds);
  return kinds;
}

/**
 * Judges an entry that was asked for by name. Authority is about writes: what is forbidden to be written
 * may still be read. A `read` needs no allowance, since it keeps nobody away and grants nothing; a
 * `stable_read` needs one that matches, with whatever action.
 */
export function judgeRequested(map: ConflictMap, contract: Contract, asked: Asked): Judged {
  const kinds = kindsOf(map, asked);
  if (kinds.length === 0) return judgeUnmatched(map, contract, asked);
  const mode = kinds.every((kind) => kind.mode === 'observe') ? 'observe' : 'enforce';
  const refusal = authorityRefusal(kinds, mode, asked);
  const permission = permissionOn(contract, asked.segments, asked.scope);
  const chosen = asked.actions.length > 0 ? named(kinds, asked) : unnamed(kinds, asked, permission.allows);
  return {
    kinds,
    mode,
    actions: chosen.actions,
    exclusive: asked.access === 'write' && chosen.known.some((action) => action.exclusive),
    resolver: resolverOf(chosen.known),
    refusal:
      refusal ?? chosen.refusal ?? contractRefusal(asked, chosen.actions, permission.allows, () => permission.anything),
  };
}

/**
 * Judges an entry that a rule brought. It reserves, and needs no allowance; it carries those of the
 * rule's actions that the contract allows and no approval guards. Reserving for a write that nobody
 * described takes it for the strictest one. What no kind matches is described by the rule itself.
 */
export function judgeImplied(map: ConflictMap, contract: Contract, asked: Asked): Judged {
  const kinds = kindsOf(map, asked);
  const observing = kinds.length === 0 ? map.unmatched === 'observe' : kinds.every((kind) => kind.mode === 'observe');
  const mode = observing ? 'observe' : 'enforce';
  const known = asked.actions.flatMap((name) => actionsCalled(kinds, name, asked.access));
  const writes = kinds.flatMap((kind) => kind.writeActions);
  const strictest = known.length > 0 ? known : writes;
  const permission = asked.actions.length === 0 ? null : permissionOn(contract, asked.segments, asked.scope);
  const actions = asked.actions.filter((name) => {
    const called = known.filter((action) => action.name === name);
    return (
      called.length > 0 &&
      called.every((action) => action.approval === null) &&
      (asked.access === 'read' || permission?.allows(name) === true)
    );
  });
  return {
    kinds,
    mode,
    actions,
    exclusive:
      asked.access === 'write' &&
      (strictest.length === 0 ? !(kinds.length === 0 && observing) : strictest.some((action) => action.exclusive)),
    resolver: resolverOf(strictest),
    refusal: authorityRefusal(kinds, mode, asked),
  };
}

interface Chosen {
  /** Names the entry is to carry. */
  readonly actions: readonly string[];
  /** What the kinds say about them. */
  readonly known: readonly KindAction[];
  readonly refusal: Refusal | null;
}

function actionsCalled(kinds: readonly Kind[], name: string, access: Access): KindAction[] {
  const found: KindAction[] = [];
  for (const kind of kinds) {
    const action = kind.actions.get(name);
    if (action?.access === access) found.push(action);
  }
  return found;
}

function named(kinds: readonly Kind[], asked: Asked): Chosen {
  const actions = [...new Set(asked.actions)];
  const known: KindAction[] = [];
  let refusal: Refusal | null = null;
  for (const name of actions) {
    const called = actionsCalled(kinds, name, asked.access);
    known.push(...called);
    if (called.length === 0) refusal ??= unknownAction(kinds, asked, name);
    else if (called.some((action) => action.approval !== null)) refusal ??= approvalRequired(asked, name);
  }
  return { actions, known, refusal };
}

/** No action named: on a write every write action that the contract allows; those that need an approval must be named. */
function unnamed(kinds: readonly Kind[], asked: Asked, allows: (action: string) => boolean): Chosen {
  if (asked.access !== 'write') return { actions: [], known: [], refusal: null };
  const all = kinds.flatMap((kind) => kind.writeActions);
  if (all.length === 0) return { actions: [], known: [], refusal: offersNoWrite(kinds, asked) };
  const guarded = new Set(all.filter((action) => action.approval !== null).map((action) => action.name));
  const allowed = [...new Set(all.map((action) => action.name))].filter(allows);
  const free = allowed.filter((name) => !guarded.has(name));
  const actions = free.length > 0 ? free : allowed;
  const known = all.filter((action) => actions.includes(action.name));
  if (allowed.length === 0)
    return {
      actions,
      known: all,
      refusal: outsideContract(asked, `none of its write actions (${listed([...new Set(all.map((a) => a.name))])})`),
    };
  return { actions, known, refusal: free.length === 0 ? approvalRequired(asked, allowed[0] as string) : null };
}

const resolverOf = (actions: readonly KindAction[]): string =>
  actions.find((action) => action.resolver !== '')?.resolver ?? '';

function judgeUnmatched(map: ConflictMap, contract: Contract, asked: Asked): Judged {
  const base = { kinds: [], actions: [...new Set(asked.actions)], exclusive: false, resolver: '' };
  if (map.unmatched === 'deny') return { ...base, mode: 'enforce', refusal: undescribed(map, asked) };
  // Reading what nobody described does no harm where proposing a change to it is welcome.
  if (map.unmatched === 'propose')
    return { ...base, mode: 'enforce', refusal: asked.access === 'write' ? proposeUnmatched(asked) : null };
  const permission = permissionOn(contract, asked.segments, asked.scope);
  return {
    ...base,
    mode: 'observe',
    refusal: contractRefusal(asked, base.actions, permission.allows, () => permission.anything),
  };
}

function contractRefusal(
  asked: Asked,
  actions: readonly string[],
  allows: (action: string) => boolean,
  anything: () => boolean,
): Refusal | null {
  if (asked.access === 'read') return null;
  const missing = actions.find((action) => !allows(action));
  if (missing !== undefined) return outsideContract(asked, `${quoted(missing)}`, true);
  return actions.length > 0 || anything() ? null : outsideContract(asked, 'anything', true);
}

function authorityRefusal(kinds: readonly Kind[], mode: ExpandedEntry['mode'], asked: Asked): Refusal | null {
  if (asked.access !== 'write') return null;
  // Below an enforced subtree, kinds that are only observed refuse nothing.
  const judging = mode === 'enforce' ? kinds.filter((kind) => kind.mode === 'enforce') : kinds;
  const kind =
    judging.find((candidate) => candidate.authority === 'forbid') ??
    judging.find((candidate) => candidate.authority === 'propose');
  if (kind === undefined) return null;
  const forbidden = kind.authority === 'forbid';
  const what =
    asked.scope === 'subtree'
      ? `Below ${quoted(asked.resource)}, ${quoted(kind.pattern.text)}`
      : `${quoted(asked.resource)} (kind ${quoted(kind.pattern.text)})`;
  const because = asked.rule === '' ? '' : ` The write set touches it by rule ${asked.rule}.`;
  const sandbox = sandboxOf(kind, asked);
  const message = forbidden
    ? `${what} is closed to automated writes.${because}`
    : `${what} may only be proposed to, not written.${because}`;
  const instead = sandbox === '' ? '' : ` or work under the sandbox path ${quoted(sandbox)}`;
  return refuse(
    forbidden ? 'forbidden' : 'propose_only',
    message,
    {
      action: forbidden ? `Leave it to a person${instead}.` : `Propose the change instead of writing it${instead}.`,
      who: 'runner',
      retryable: false,
    },
    { resource: asked.resource },
  );
}

function sandboxOf(kind: Kind, asked: Asked): string {
  const captures = kind.sandbox === null ? null : bindAtOrBelow(kind.pattern, asked.segments);
  if (kind.sandbox === null || captures === null) return '';
  const bound =
    asked.scope === 'exact' && captures.partial !== null
      ? { bound: new Map([...captures.bound, [captures.partial.name, captures.partial.prefix]]), partial: null }
      : captures;
  const path = substitute(kind.sandbox, bound);
  return path.kind === 'unbound' ? kind.sandbox.text : path.resource;
}

const kindNames = (kinds: readonly Kind[]): string => listed(kinds.slice(0, 3).map((kind) => kind.pattern.text));

function unknownAction(kinds: readonly Kind[], asked: Asked, name: string): Refusal {
  const every = kinds.flatMap((kind) => [...kind.actions.values()]);
  const other = every.find((action) => action.name === name);
  const fitting = [...new Set(every.filter((action) => action.access === asked.access).map((action) => action.name))];
  const message =
    other === undefined
      ? `${quoted(name)} is no action of ${quoted(asked.resource)} (kind ${kindNames(kinds)})${didYouMean(name, fitting)}`
      : `${quoted(name)} on ${quoted(asked.resource)} is a ${other.access} action; the entry asks for ${asked.access}.`;
  const action =
    other === undefined
      ? `Name one of its ${asked.access} actions: ${listed(fitting)}.`
      : `Ask for it with access ${other.access}, or name one of its ${asked.access} actions: ${listed(fitting)}.`;
  return refuse('undescribed', message, { action, who: 'runner', retryable: false }, { resource: asked.resource });
}

function offersNoWrite(kinds: readonly Kind[], asked: Asked): Refusal {
  return refuse(
    'undescribed',
    `${quoted(asked.resource)} (kind ${kindNames(kinds)}) has no write action in the conflict map.`,
    {
      action: 'Ask for it to be read, or have an admin describe the action in the map.',
      who: 'admin',
      retryable: false,
    },
    { resource: asked.resource },
  );
}

function approvalRequired(asked: Asked, name: string): Refusal {
  return refuse(
    'approval_required',
    `The action ${quoted(name)} on ${quoted(asked.resource)} needs an approval, and approvals cannot be given yet.`,
    { action: 'Leave the action out, or have a person do it.', who: 'approver', retryable: false },
    { resource: asked.resource },
  );
}

function outsideContract(asked: Asked, what: string, negate = false): Refusal {
  const where =
    asked.scope === 'subtree' ? `${quoted(asked.resource)} and everything below it` : quoted(asked.resource);
  return refuse(
    'outside_contract',
    `The run's contract ${negate ? 'does not allow' : 'allows'} ${what} on ${where}.`,
    { action: 'Leave the entry out, or ask for a run whose contract allows it.', who: 'runner', retryable: false },
    { resource: asked.resource },
  );
}

function proposeUnmatched(asked: Asked): Refusal {
  return refuse(
    'propose_only',
    `No kind of the conflict map matches ${quoted(asked.resource)}; what is not described may only be proposed.`,
    {
      action: 'Propose the change instead of writing it, or have an admin describe the resource in the map.',
      who: 'admin',
      retryable: false,
    },
    { resource: asked.resource },
  );
}

function undescribed(map: ConflictMap, asked: Asked): Refusal {
  const near = closestKinds(map, asked);
  const none = map.kinds.length === 0 ? 'The map has no kinds yet.' : 'The map has no kind that runs may write.';
  const accepted = near.length === 0 ? none : `Accepted would be a resource such as ${listed(near)}.`;
  const where = asked.scope === 'subtree' ? `${quoted(asked.resource)} or anything below it` : quoted(asked.resource);
  return refuse(
    'undescribed',
    `No kind of the conflict map matches ${where}, so no target can check it. ${accepted}`,
    {
      action: 'Name resources that the map describes, or have an admin add a kind for this one.',
      who: 'runner',
      retryable: false,
    },
    { resource: asked.resource },
  );
}

/** Kinds that are looked at for a hint: a refusal must stay cheap. */
const MAX_LOOKED_AT = 1_000;

/** The kinds that come closest, of those that would be accepted (C2): most of the first segments in common, then fewest letters different. */
function closestKinds(map: ConflictMap, { segments: resource, access }: Asked): string[] {
  const text = resource.join('/').slice(0, 24);
  const ranked = map.kinds
    .slice(0, MAX_LOOKED_AT)
    .filter((kind) => access !== 'write' || takesWrites(kind))
    .map((kind) => ({ text: kind.pattern.text, common: commonSegments(kind, resource) }));
  const most = Math.max(0, ...ranked.map((kind) => kind.common));
  return ranked
    .filter((kind) => kind.common === most)
    .slice(0, 32)
    .map((kind) => ({ text: kind.text, distance: editDistance(kind.text.slice(0, 24), text) }))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map((kind) => kind.text);
}

function takesWrites({ authority, actions }: Kind): boolean {
  return (
    authority === 'write' &&
    [...actions.values()].some(({ access, approval }) => access === 'write' && approval === null)
  );
}

function commonSegments(kind: Kind, resource: readonly string[]): number {
  let common = 0;
  for (const [index, segment] of kind.pattern.segments.entries()) {
    if (resource[index] === undefined || (segment.kind === 'literal' && segment.text !== resource[index])) break;
    common += 1;
  }
  return common;
}
