import { Access, Scope } from '../../gen/writ/v1/types.js';
import { WritError } from '../common/errors.js';

/** One resource that is asked for. */
export interface RequestedResource {
  /** Its path: 1 to 32 segments, at most 1,024 bytes of UTF-8 in NFC; or an alias of the conflict map. */
  readonly resource: string;
  /** Default `write`. */
  readonly access?: 'read' | 'stable_read' | 'write';
  /** Default `exact`. */
  readonly scope?: 'exact' | 'subtree';
  /** At most 32. Default, and empty on a write: every write action of the kind that the run's contract allows. */
  readonly actions?: readonly string[];
  /** The version that the run has read, as the target names it, at most 256 bytes; recorded in the log. */
  readonly observedVersion?: string;
}

/** A change of what a lease covers: at least one of the three. */
export interface WriteSetChange {
  readonly add?: readonly RequestedResource[];
  /** Resources of which everything that was asked for is given up. */
  readonly remove?: readonly string[];
  /** In place of everything that was asked for on its resource; it may only be less. No actions on a write: those held. */
  readonly downgrade?: readonly RequestedResource[];
  /** The same key is the same change, however often it is sent. Default: a new one. */
  readonly idempotencyKey?: string;
  /** Finds the attempt in the log (`writ why`). */
  readonly requestId?: string;
}

const ACCESS = {
  read: Access.ACCESS_READ,
  stable_read: Access.ACCESS_STABLE_READ,
  write: Access.ACCESS_WRITE,
} as const;
const SCOPE = { exact: Scope.SCOPE_EXACT, subtree: Scope.SCOPE_SUBTREE } as const;

/** The access of an entry, in a word. */
export function accessWord(access: Access): NonNullable<RequestedResource['access']> {
  if (access === Access.ACCESS_READ) return 'read';
  return access === Access.ACCESS_STABLE_READ ? 'stable_read' : 'write';
}

/** The scope of an entry, in a word. */
export function scopeWord(scope: Scope): NonNullable<RequestedResource['scope']> {
  return scope === Scope.SCOPE_SUBTREE ? 'subtree' : 'exact';
}

/** Resources as the contract words them. Throws a WritError where one is not of its type: a word that is not known would be the default. */
export function wireEntries(resources: readonly RequestedResource[], field = 'resources') {
  demandList(field, resources);
  return resources.map((one, index) => {
    const at = `${field}[${index}]`;
    if (typeof one !== 'object' || one === null) throw WritError.wrong(at, 'must be { resource, actions, … }');
    const { resource, actions = [], observedVersion } = one;
    demandTexts(`${at}.actions`, actions);
    const access = wordIn(`${at}.access`, ACCESS, one.access ?? 'write');
    const scope = wordIn(`${at}.scope`, SCOPE, one.scope ?? 'exact');
    return { resource, access, scope, actions: [...actions], observedVersion };
  });
}

function demandList(field: string, value: unknown): asserts value is readonly unknown[] {
  if (!Array.isArray(value)) throw WritError.wrong(field, 'must be a list');
}

function demandTexts(field: string, value: unknown): void {
  demandList(field, value);
  if (!value.every((one) => typeof one === 'string')) throw WritError.wrong(field, 'must be a list of texts');
}

function wordIn<T>(field: string, words: Readonly<Record<string, T>>, word: string): T {
  if (Object.hasOwn(words, word)) return words[word] as T;
  throw WritError.wrong(field, `must be ${Object.keys(words).join(' or ')}, not ${JSON.stringify(word)}`);
}

export function wireChange({ add = [], remove = [], downgrade = [], idempotencyKey, requestId }: WriteSetChange) {
  demandTexts('remove', remove);
  return {
    add: wireEntries(add, 'add'),
    remove: [...remove],
    downgrade: wireEntries(downgrade, 'downgrade'),
    idempotencyKey: idempotencyKey ?? '',
    requestId: requestId ?? '',
  };
}
