/** What to do with pairs of live leases that a new map puts in conflict. */
export type Handling = 'ON_LIVE_CONFLICT_REFUSE' | 'ON_LIVE_CONFLICT_REVOKE_NEWER' | 'ON_LIVE_CONFLICT_KEEP_UNTIL_END';

export const HANDLINGS: readonly (readonly [Handling, string])[] = [
  ['ON_LIVE_CONFLICT_REFUSE', 'Refuse the change, and name the pairs'],
  ['ON_LIVE_CONFLICT_REVOKE_NEWER', 'End the newer lease of each pair'],
  ['ON_LIVE_CONFLICT_KEEP_UNTIL_END', 'Let both live until they end'],
];
