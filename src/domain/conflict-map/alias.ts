import { type Pattern, parsePattern, substitute } from '../pattern.js';
import { parseResource } from '../resource.js';

/** A step of an alias: text as it is, or a capture, which ends before the character that follows it. */
export type AliasToken =
  | { readonly kind: 'text'; readonly text: string }
  /** One or more characters, none of them in `not`; a rest may hold anything. */
  | { readonly kind: 'capture'; readonly name: string; readonly rest: boolean; readonly not: string };

/**
 * Another name of a resource, such as an ARN or a URL. `{name}` stands for one or more characters other
 * than "/" and the one that follows it, so that there is one way to read a text; a final `{name...}`
 * stands for all that remains.
 */
export interface Alias {
  readonly from: string;
  readonly tokens: readonly AliasToken[];
  readonly to: Pattern;
  /** What every text it matches begins with. */
  readonly prefix: string;
  /** How specific it is: less is more, see `compareAliases`. */
  readonly shape: string;
}

export type ParsedAlias =
  | { readonly ok: true; readonly alias: Alias }
  | { readonly ok: false; readonly reason: string; readonly at: 'from' | 'to' };

const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/** Reads an alias of the document. */
export function parseAlias(from: string, to: string): ParsedAlias {
  const tokens = parseTokens(from);
  if (typeof tokens === 'string') return { ok: false, reason: tokens, at: 'from' };
  const target = parsePattern(to, 'template');
  if (!target.ok) return { ok: false, reason: target.reason, at: 'to' };
  for (const segment of target.pattern.segments) {
    if (segment.kind === 'literal') continue;
    const source = tokens.find((token) => token.kind === 'capture' && token.name === segment.name);
    if (source?.kind !== 'capture')
      return { ok: false, reason: `{${segment.name}} is not captured by ${JSON.stringify(from)}`, at: 'to' };
    if (source.rest !== (segment.kind === 'rest'))
      return {
        ok: false,
        reason: `{${segment.name}} must be written ${source.rest ? `{${segment.name}...}` : `{${segment.name}}`} here, as in "from"`,
        at: 'to',
      };
  }
  return { ok: true, alias: { from, tokens, to: target.pattern, prefix: prefixOf(tokens), shape: shapeOf(tokens) } };
}

/** What every text of the tokens begins with. */
export function prefixOf(tokens: readonly AliasToken[]): string {
  const first = tokens[0];
  return first?.kind === 'text' ? first.text : '';
}

/** Whether one text can begin with both. */
export function prefixesMeet(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a);
}

function parseTokens(from: string): AliasToken[] | string {
  const parts = from.split(/(\{[^{}]*\})/).filter((part) => part !== '');
  if (parts.length === 0) return 'it is empty';
  const tokens: AliasToken[] = [];
  const names = new Set<string>();
  for (const [index, part] of parts.entries()) {
    const inner = /^\{(.*)\}$/s.exec(part)?.[1];
    if (inner === undefined) {
      if (/[{}]/.test(part)) return 'its braces do not pair';
      tokens.push({ kind: 'text', text: part });
      continue;
    }
    const rest = inner.endsWith('...');
    const name = rest ? inner.slice(0, -3) : inner;
    if (!NAME.test(name)) return `${JSON.stringify(part)} is no capture; write {name} or, at the end, {name...}`;
    if (names.has(name)) return `{${name}} is there twice`;
    if (rest && index < parts.length - 1) return `{${name}...} must come last`;
    const next = parts[index + 1];
    if (next?.startsWith('{')) return `two captures touch: ${part}${next}`;
    names.add(name);
    tokens.push({
      kind: 'capture',
      name,
      rest,
      not: rest ? '' : `/${next === undefined ? '' : String.fromCodePoint(next.codePointAt(0) ?? 0)}`,
    });
  }
  return tokens;
}

/** What the alias captures of a text; null: it does not match. */
function matchAlias(alias: Alias, text: string): Map<string, string> | null {
  const captures = new Map<string, string>();
  let at = 0;
  for (const token of alias.tokens) {
    if (token.kind === 'text') {
      if (!text.startsWith(token.text, at)) return null;
      at += token.text.length;
      continue;
    }
    let end = token.rest ? text.length : at;
    while (!token.rest && end < text.length && !token.not.includes(text.charAt(end))) end += 1;
    if (end === at) return null;
    captures.set(token.name, text.slice(at, end));
    at = end;
  }
  return at === text.length ? captures : null;
}

/** The path an alias gives to a text; null: it does not match; a reason: what it gives is no resource. */
export function applyAlias(
  alias: Alias,
  text: string,
): { readonly resource: string } | { readonly reason: string } | null {
  const bound = matchAlias(alias, text);
  if (bound === null) return null;
  const made = substitute(alias.to, { bound, partial: null });
  const path = made.kind === 'exact' ? parseResource(made.resource) : null;
  if (path === null) return { reason: 'a capture is not bound' };
  return path.ok ? { resource: path.resource } : { reason: path.reason };
}

/** Negative: `a` is more specific; 0: equally. Text before a capture, a capture before a rest, left to right. */
function compareAliases(a: Alias, b: Alias): number {
  return a.shape === b.shape ? 0 : a.shape < b.shape ? -1 : 1;
}

/** One character a step, so that shapes compare left to right: text "1", capture "2", rest "3"; the end is the least specific. */
function shapeOf(tokens: readonly AliasToken[]): string {
  const steps = tokens.map((token) => (token.kind === 'text' ? '1'.repeat(token.text.length) : token.rest ? '3' : '2'));
  return `${steps.join('')}4`;
}

/**
 * Whether some text is matched by both, so that which of them counts depends on their order. Walks the
 * pairs of places that reading one text letter by letter can lead to, each once.
 */
export function aliasesOverlap(a: readonly AliasToken[], b: readonly AliasToken[]): boolean {
  if (partWays(a, b)) return false;
  const one = stepsOf(a);
  const other = stepsOf(b);
  const width = other.length + 1;
  const seen = new Uint8Array((one.length + 1) * width);
  const open = [0];
  const go = (i: number, j: number): void => {
    const place = i * width + j;
    if (seen[place] === 0) open.push(place);
    seen[place] = 1;
  };
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    const i = Math.floor(place / width);
    const j = place % width;
    const mine = one[i];
    const theirs = other[j];
    if (mine === undefined && theirs === undefined) return true;
    if (mine === undefined || theirs === undefined || !shareLetter(mine, theirs)) continue;
    go(i + 1, j + 1);
    if (mine.kind === 'many') go(i, j + 1);
    if (theirs.kind === 'many') go(i + 1, j);
  }
  return false;
}

/** Whether one letter can be the next for both; two captures always leave one, as each refuses two letters at most. */
function shareLetter(a: Step, b: Step): boolean {
  if (a.kind === 'many') return b.kind === 'many' || !a.not.includes(b.letter);
  return b.kind === 'many' ? !b.not.includes(a.letter) : a.letter === b.letter;
}

/** A quick no: they read a text in step up to where each wants another text. */
function partWays(a: readonly AliasToken[], b: readonly AliasToken[]): boolean {
  for (const [index, one] of a.entries()) {
    const other = b[index];
    if (other === undefined) return false;
    if (one.kind === 'text' && other.kind === 'text') {
      if (one.text === other.text) continue;
      return !one.text.startsWith(other.text) && !other.text.startsWith(one.text);
    }
    // Only captures that end before one and the same letter end in the same place.
    if (
      one.kind === 'text' ||
      other.kind === 'text' ||
      one.rest ||
      other.rest ||
      one.not !== other.not ||
      one.not.length < 2
    )
      return false;
  }
  return false;
}

type Step = { readonly kind: 'letter'; readonly letter: string } | { readonly kind: 'many'; readonly not: string };

/** A capture of one or more is one step that stays or goes on. */
function stepsOf(tokens: readonly AliasToken[]): Step[] {
  return tokens.flatMap((token): Step[] =>
    token.kind === 'text'
      ? [...token.text].map((letter) => ({ kind: 'letter', letter }))
      : [{ kind: 'many', not: token.not }],
  );
}

/** The texts a template can make, as an alias would match them. */
export function tokensOfTemplate(template: Pattern): AliasToken[] {
  const tokens: AliasToken[] = [];
  for (const [index, segment] of template.segments.entries()) {
    if (index > 0) tokens.push({ kind: 'text', text: '/' });
    if (segment.kind === 'literal') tokens.push({ kind: 'text', text: segment.text });
    else
      tokens.push({
        kind: 'capture',
        name: segment.name,
        rest: segment.kind === 'rest',
        not: segment.kind === 'rest' ? '' : '/',
      });
  }
  return tokens;
}

/** Aliases by what they begin with: most texts are plain paths and are let through at once. */
export class AliasIndex {
  private readonly byPrefix = new Map<number, Map<string, Alias[]>>();

  constructor(aliases: readonly Alias[]) {
    for (const alias of [...aliases].sort(compareAliases)) {
      const prefix = alias.prefix.slice(0, 16);
      const group = this.byPrefix.get(prefix.length) ?? new Map<string, Alias[]>();
      this.byPrefix.set(prefix.length, group);
      group.set(prefix, [...(group.get(prefix) ?? []), alias]);
    }
  }

  /** The most specific alias that matches the text. */
  find(text: string): Alias | null {
    if (this.byPrefix.size === 0) return null;
    let best: Alias | null = null;
    for (const [length, group] of this.byPrefix) {
      for (const alias of group.get(text.slice(0, length)) ?? []) {
        if (best !== null && compareAliases(best, alias) <= 0) break;
        if (matchAlias(alias, text) !== null) best = alias;
      }
    }
    return best;
  }
}
