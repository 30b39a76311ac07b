/**
 * The rehearsal: a suite that plays the classic collisions against a service, from outside, before an agent meets it
 * (T1–T4, T7, T8; docs/rehearsals.md).
 */
export { CASES } from './cases/index.js';
export { parseRehearsalConfig, type RehearsalConfig, RehearsalConfigError, type ResourceConfig } from './config.js';
export type { CaseResult, Outcome, ResourceResult } from './result.js';
export { rehearse, SUITE_VERSION, type SuiteOptions } from './suite.js';
export { TargetUnreachableError } from './target.js';
