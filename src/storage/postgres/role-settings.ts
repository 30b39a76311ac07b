/**
 * Settings for the sessions of our role in this database: settings of the role, because a pooler refuses them in the
 * startup packet. They bound what a forgotten or stopped client can hold, and fix plans:
 * - every query of ours has an index that serves it, but a plan made while a table was empty, and kept by a prepared
 *   statement, would go on scanning it when it is not: hence no sequential scans, and generic plans only, which the long
 *   append would otherwise be planned again for, at about the cost of executing it;
 * - jit: compiling takes longer than any of our statements.
 */
export const ROLE_SETTINGS: Readonly<Record<string, string>> = {
  statement_timeout: '60s',
  lock_timeout: '5s',
  idle_in_transaction_session_timeout: '10s',
  jit: 'off',
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
};
