/** How codes and numbers of the contract are said on the page. */

/** The code of an enum's value without its prefix: `REFUSAL_KIND_HELD` is `HELD`. */
export function codeOf(value: string | undefined, prefix: string): string {
  if (value === undefined) return '';
  const code = value.startsWith(`${prefix}_`) ? value.slice(prefix.length + 1) : value;
  return code === 'UNSPECIFIED' ? '' : code;
}

/** A code as words: `RUN_STOPPED` is `run stopped`. */
export const inLowerCase = (code: string): string => code.toLowerCase().replaceAll('_', ' ');

export const runState = (state: string | undefined): string => codeOf(state, 'RUN_STATE');
/** By the code of its state: it is over, and every outcome is known. */
export const hasEnded = (state: string): boolean => ['STOPPED', 'FINISHED', 'FAILED', 'EXPIRED'].includes(state);
export const leaseState = (state: string | undefined): string => codeOf(state, 'LEASE_STATE');
export const endReason = (reason: string | undefined): string => codeOf(reason, 'END_REASON');
export const refusalKind = (kind: string | undefined): string => codeOf(kind, 'REFUSAL_KIND');
export const access = (value: string | undefined): string => inLowerCase(codeOf(value, 'ACCESS'));
/** How far something reaches. */
export const covers = (scope: string | undefined): string =>
  codeOf(scope, 'SCOPE') === 'SUBTREE' ? 'and everything below' : 'and nothing below';
export const validation = (value: string | undefined): string => inLowerCase(codeOf(value, 'VALIDATION'));

const HOW_TARGETS_DECIDE: Readonly<Record<string, string>> = {
  introspect: 'ask at each write',
  view: 'follow the log in a view',
  local: 'verify credentials, and do not ask',
};

/** What targets of a kind do before they accept a write, by the map's `validation`. */
export const howTargetsDecide = (value: string | undefined): string => HOW_TARGETS_DECIDE[validation(value)] ?? '–';

/** `1 lease`, `2 leases`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`;

/** `1 lease ends`, `2 leases end`. */
export const countedThat = (count: number, one: string, does: string, many: string): string =>
  `${counted(count, one)} ${count === 1 ? does : many}`;

/** The beginning of an id, which is enough to tell it from others on a page. */
export const shortId = (id: string): string => (id.length > 12 ? id.slice(0, 8) : id);

/** `a`, `a and b`, `a, b and c`. */
export function listed(items: readonly string[]): string {
  if (items.length <= 1) return items[0] ?? '';
  return `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;
}
