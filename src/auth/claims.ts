import type { Principal } from './principal.js';
import { PRINCIPAL_NAME, RESERVED_NAME, type Rights, toPrincipal } from './principal-entry.js';

/**
 * From the claims of a verified token to a principal. The mappings of an issuer are tried in the order of the file and
 * the first that matches decides. A claim matches as a string only: a list, a number or an object matches nothing (F19).
 *
 * In a claim's pattern `*` stands for one or more characters other than "/" and ":", and `**` for one or more of any;
 * everything else stands for itself. A principal is named, or made by a template such as `ci:{repository}`.
 */
export interface MappingEntry extends Omit<Rights, 'name'> {
  readonly claims: Readonly<Record<string, string>>;
  /** The name of a configured principal, or a template of a name. */
  readonly principal: string;
}

export type Claims = Readonly<Record<string, unknown>>;

/** Whom the claims stand for, or why for nobody. */
export type Mapped =
  | { readonly ok: true; readonly principal: Principal }
  | { readonly ok: false; readonly problem: string };

/** Tells whom claims stand for. */
export type ClaimsMapper = (claims: Claims) => Mapped;

const MAX_STARS = 4;
const MAX_CLAIM_LENGTH = 1_024;
const STARS = /\*+/g;

export function isClaimPattern(text: string): boolean {
  const stars = text.match(STARS) ?? [];
  return stars.length <= MAX_STARS && stars.every((run) => run.length <= 2);
}

function compilePattern(text: string): RegExp {
  const literals = text.split(STARS).map((literal) => literal.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
  const stars = (text.match(STARS) ?? []).map((run) => (run.length === 2 ? '.+' : '[^/:]+'));
  return new RegExp(`^${literals.map((literal, index) => literal + (stars[index] ?? '')).join('')}$`, 'su');
}

/** A template: literal text, then claims with the text that follows each. */
interface Template {
  readonly prefix: string;
  readonly parts: readonly { readonly claim: string; readonly after: string }[];
}

const PLACEHOLDER = /\{([^{}]+)\}/g;

/** The template, or what is wrong with it. */
function parseTemplate(text: string): Template | string {
  const claims = [...text.matchAll(PLACEHOLDER)].map(([, claim = '']) => claim);
  const [prefix = '', ...after] = text.split(/\{[^{}]+\}/);
  if ([prefix, ...after].some((literal) => !/^[\x21-\x7e]*$/.test(literal) || /[{}]/.test(literal)))
    return 'must consist of printable ASCII characters and {claims}';
  if (prefix === '') return 'must begin with a text of its own, such as "ci:"';
  if (after.slice(0, -1).some((literal) => literal === '')) return 'must have a text between two claims';
  return { prefix, parts: claims.map((claim, index) => ({ claim, after: after[index] ?? '' })) };
}

/**
 * The name, or what is wrong. A value may not contain the text that follows it: otherwise two different sets of claims
 * could make one name.
 */
function fill({ prefix, parts }: Template, claims: Claims): { readonly name: string } | { readonly problem: string } {
  let name = prefix;
  for (const { claim, after } of parts) {
    const value = claimText(claims, claim);
    if (value === undefined || value === '') return { problem: `the claim ${claim} is missing, or no text` };
    if (after !== '' && value.includes(after))
      return { problem: `the claim ${claim} contains ${JSON.stringify(after)}` };
    name += value + after;
  }
  return PRINCIPAL_NAME.test(name) ? { name } : { problem: 'its claims make no name of a principal' };
}

function claimText(claims: Claims, name: string): string | undefined {
  const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
  return typeof value === 'string' && value.length <= MAX_CLAIM_LENGTH ? value : undefined;
}

/** Compiles the mappings of one issuer, which `claimsProblems` found nothing wrong with. */
export function compileMappings(
  mappings: readonly MappingEntry[],
  principals: ReadonlyMap<string, Principal>,
): ClaimsMapper {
  const compiled = mappings.map((mapping) => ({
    patterns: Object.entries(mapping.claims).map(([claim, text]) => ({ claim, pattern: compilePattern(text) })),
    resolve: resolver(mapping, principals),
  }));
  return (claims) => {
    const found = compiled.find(({ patterns }) =>
      patterns.every(({ claim, pattern }) => pattern.test(claimText(claims, claim) ?? '')),
    );
    return found?.resolve(claims) ?? { ok: false, problem: 'no mapping matches its claims' };
  };
}

function resolver(mapping: MappingEntry, principals: ReadonlyMap<string, Principal>): ClaimsMapper {
  const known = principals.get(mapping.principal);
  if (known !== undefined) return () => ({ ok: true, principal: known });
  const template = parseTemplate(mapping.principal);
  if (typeof template === 'string') throw new Error(`${mapping.principal}: ${template}`);
  return (claims) => {
    const filled = fill(template, claims);
    if ('problem' in filled) return { ok: false, problem: filled.problem };
    const { name } = filled;
    // Whoever can choose a claim must not become somebody who is configured, nor the coordinator itself.
    if (principals.has(name) || name === RESERVED_NAME)
      return { ok: false, problem: `its claims make the name ${name}, which is another principal's` };
    return { ok: true, principal: toPrincipal({ ...mapping, name }) };
  };
}

/** What is wrong with a mapping's principal, by the numbers of issuer and mapping. */
export interface MappingProblem {
  readonly issuer: number;
  readonly mapping: number;
  readonly problem: string;
}

/**
 * Looks over the mappings of all issuers: a name must be configured, a template well-formed, and the templates of two
 * issuers must not be able to make one name, since runs belong to names.
 */
export function claimsProblems(
  configured: ReadonlySet<string>,
  issuers: readonly (readonly MappingEntry[])[],
): MappingProblem[] {
  const problems: MappingProblem[] = [];
  const prefixes: { readonly issuer: number; readonly prefix: string }[] = [];
  for (const [issuer, mappings] of issuers.entries()) {
    for (const [mapping, { principal }] of mappings.entries()) {
      if (configured.has(principal)) continue;
      const template = principal.includes('{') ? parseTemplate(principal) : 'names no principal of this file';
      if (typeof template === 'string') {
        problems.push({ issuer, mapping, problem: template });
        continue;
      }
      const { prefix } = template;
      const other = prefixes.find(
        (one) => one.issuer !== issuer && (one.prefix.startsWith(prefix) || prefix.startsWith(one.prefix)),
      );
      if (other !== undefined) {
        const problem = `could make the same name as a template of issuers.${other.issuer}; begin it with another text`;
        problems.push({ issuer, mapping, problem });
      }
      prefixes.push({ issuer, prefix });
    }
  }
  return problems;
}
