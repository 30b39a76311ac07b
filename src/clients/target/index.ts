/**
 * The target kit: ask before a protected write, and guard the data where it lives.
 *
 * @example
 * import { checkFence, connectWrit, postgresGuard } from 'writ/target';
 *
 * const writ = connectWrit({ endpoint: '127.0.0.1:7410', token });
 * const guard = postgresGuard();
 * // in the transaction of the write: the guard first, then the check, then the write; commit only if both agree
 */
export { type ConnectOptions, connectWrit, type WritClient } from '../common/connect.js';
export { type WritCode, WritError, type WritViolation } from '../common/errors.js';
export type { TlsOptions } from '../common/tls.js';
export {
  checkFence,
  type DecisionReason,
  type FenceDecision,
  type FenceQuestion,
  type WriteDecision,
} from './check.js';
export { Credential, type CredentialAnswer, type CredentialQuestion } from './credential.js';
export { type CredentialReason, CredentialRefused } from './credential-refused.js';
export type { DpopOptions, PresentedProof } from './dpop.js';
export {
  type GuardClient,
  type GuardedOpen,
  type GuardedWrite,
  type GuardHolder,
  type GuardReason,
  GuardRefusedError,
  guardSchemaSql,
  type PostgresGuard,
  postgresGuard,
} from './postgres-guard.js';
export {
  type CredentialVerifier,
  createCredentialVerifier,
  type Presented,
  type VerifierOptions,
} from './verify-credential.js';
