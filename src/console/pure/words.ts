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
export const leaseState = (state: string | undefined): string => codeOf(state, 'LEASE_STATE');
export const endReason = (reason: string | undefined): string => codeOf(reason, 'END_REASON');
export const refusalKind = (kind: string | undefined): string => codeOf(kind, 'REFUSAL_KIND');
export const access = (value: string | undefined): string => inLowerCase(codeOf(value, 'ACCESS'));
export const scope = (value: string | undefined): string => inLowerCase(codeOf(value, 'SCOPE'));
export const validation = (value: string | undefined): string => inLowerCase(codeOf(value, 'VALIDATION'));

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
