/**
 * The target kit: a gate that asks before a protected write, and a guard for the data where it lives.
 *
 * @example
 * import { connectWrit, createGate, honoGate, postgresGuard, readRouteTable, writesOf } from 'writ/target';
 *
 * const gate = createGate({ client: connectWrit({ endpoint: '127.0.0.1:7410', token }), routes: readRouteTable('routes.yaml') });
 * const guard = postgresGuard();
 * app.use(honoGate(gate));
 * // in the handler, in the transaction of the write: guard.admit(client, ...writesOf(c).toGuard), then the write
 */
export {
  CHANGE_CLASSES,
  type ChangeClass,
  type ChangeRule,
  changeRule,
  type OnConflict,
  parseRouteTable,
  type RouteTable,
  type RouteTableDocument,
  RouteTableError,
  type RouteTableProblem,
} from '../../route-table/index.js';
export { type ConnectOptions, connectWrit, type WritClient } from '../common/connect.js';
export { type WritCode, WritError, type WritViolation } from '../common/errors.js';
export type { TlsOptions } from '../common/tls.js';
export {
  checkFence,
  type DecisionReason,
  type FenceDecision,
  type FenceHolder,
  type FenceQuestion,
  type WriteDecision,
} from './check.js';
export { expressConditional, honoConditional, type NodeRequest } from './conditional-http.js';
export {
  etagOf,
  type Precondition,
  type PreconditionFlaw,
  type ReadPrecondition,
  readPrecondition,
} from './conditional-precondition.js';
export {
  type Changed,
  type ConditionalChange,
  type ConditionalTarget,
  type ConditionOptions,
  conditionOf,
  type Statement,
  VersionConflictError,
  type WriteCondition,
} from './conditional-writes.js';
export { Credential, type CredentialAnswer, type CredentialQuestion } from './credential.js';
export { type CredentialReason, CredentialRefused } from './credential-refused.js';
export type { DpopOptions, PresentedProof } from './dpop.js';
export { createFenceView, type FenceView, type FenceViewOptions } from './fence-view.js';
export { createGate, type Gate, type GateOptions } from './gate.js';
export type {
  AllowedUnchecked,
  AllowedWrite,
  AllowedWrites,
  GateCaller,
  GateDecision,
  GateRequest,
  Refused,
} from './gate-decision.js';
export { type ExpressGateOptions, type ExpressRequest, expressGate } from './gate-express.js';
export { type GrpcGateOptions, grpcGate } from './gate-grpc.js';
export { type GrpcStatus, grpcStatusOf } from './gate-grpc-status.js';
export { type HonoGateOptions, honoGate } from './gate-hono.js';
export { decisionOf, writesOf } from './gate-let-in.js';
export type { HeaderSource } from './gate-presented.js';
export { readRouteTable } from './gate-routes.js';
export {
  type Guard,
  type GuardedOpen,
  type GuardedPath,
  type GuardedWrite,
  type GuardHolder,
  type GuardReason,
  GuardRefusedError,
} from './guard.js';
export {
  answerOnce,
  type IdempotencyOptions,
  type IdempotencyStore,
  type IdempotentRequest,
  jsonAnswer,
  type Settlement,
} from './idempotency.js';
export { expressIdempotent, honoIdempotent, type IdempotentRoute } from './idempotency-http.js';
export {
  type PostgresIdempotency,
  type PostgresIdempotencyOptions,
  postgresIdempotency,
  type UnknownOutcome,
} from './idempotency-postgres.js';
export type { KeyScope } from './idempotency-record.js';
export { type RedisIdempotency, type RedisIdempotencyOptions, redisIdempotency } from './idempotency-redis.js';
export {
  type MadeStepContext,
  type OrderedChange,
  type OrderedChanges,
  type OrderedChangesOptions,
  type OrderedStep,
  orderedChanges,
  type StepContext,
} from './ordered-change.js';
export type { PlanState, PlanView, StepEffects, StepState, StepView } from './ordered-change-store.js';
export type { Override, OverrideGrant, OverrideRecord } from './override.js';
export { type FileOverrideJournal, fileOverrideJournal } from './override-file-journal.js';
export type { OverrideJournal } from './override-journal.js';
export { type PostgresOverrideJournal, postgresOverrideJournal } from './override-postgres-journal.js';
export {
  type GuardClient,
  type PostgresChange,
  type PostgresGuard,
  postgresGuard,
} from './postgres-guard.js';
export { guardSchemaSql } from './postgres-guard-sql.js';
export { inTransaction } from './postgres-transaction.js';
export { PROBLEM_CONTENT_TYPE, type Problem, type ProblemInit, type ProblemStatus, problem } from './problem.js';
export { type Answer, ProblemError, problemAnswer, responseOf } from './problem-error.js';
export { problemOf } from './problem-of.js';
export { type RedisChange, type RedisGuard, type RedisGuardOptions, redisGuard } from './redis-guard.js';
export type { RedisStore } from './redis-script.js';
export { type Reported, reportWrite, type WriteOutcome, type WriteOutcomes } from './report-write.js';
export {
  type CredentialVerifier,
  createCredentialVerifier,
  type Presented,
  type VerifierOptions,
} from './verify-credential.js';
export { type KeptWriteRecord, type WriteRecord, type WriteRecords, writeRecords } from './write-record.js';
