/**
 * The runner kit: take a write set, keep it while the work goes on, write with it, give it back.
 *
 * @example
 * import { connectWrit, withWriteSet } from 'writ/runner';
 *
 * const writ = connectWrit({ endpoint: '127.0.0.1:7410', token });
 * const targets = [{ audience: 'svc:release-api', origins: ['https://releases.example.com'] }];
 * await withWriteSet(writ, { runId, resources: [{ resource: 'release/prod-eu', actions: ['promote'] }], targets }, async (lease) => {
 *   await lease.fetch('https://releases.example.com/releases/prod-eu/promote', { method: 'POST', writes: ['release/prod-eu'] });
 * });
 */
export type { TokenSource } from '../common/channel.js';
export { type ConnectOptions, connectWrit, type WritClient } from '../common/connect.js';
export { type WritCode, WritError, type WritViolation } from '../common/errors.js';
export { toTimestamp } from '../common/time.js';
export type { TlsOptions } from '../common/tls.js';
export {
  type AcquireRequest,
  type AcquireResult,
  acquire,
  resume,
  tryAcquire,
} from './acquire.js';
export {
  CredentialNotIssuedError,
  kindName,
  LeaseLostError,
  LeaseReleasedError,
  RefusedError,
  UndeclaredTargetError,
  UndeclaredWriteError,
} from './errors.js';
export type { LeaseEventName, LeaseEvents, LeaseListener } from './events.js';
export { type Interrupt, InterruptedError, interruptSignal } from './interrupt.js';
export { Lease, type LeaseWatch } from './lease.js';
export type { PresentedCall, PresentedRequestInit } from './presenter.js';
export {
  type AcquireRefusal,
  type AcquireRefusalKind,
  type Course,
  type RefusalBlocker,
  toAcquireRefusal,
} from './refusals.js';
export { readProblem, type TargetProblem } from './target-problem.js';
export type { DpopKeyPair, Target } from './targets.js';
export { withWriteSet } from './with-write-set.js';
export {
  type Attempt,
  type Candidates,
  type ConditionalWrite,
  type ConditionalWriteResult,
  type Earlier,
  type Observed,
  type Question,
  resolutionOf,
  type WriteDecision,
  writeConditionally,
} from './write-conditionally.js';
export type { RequestedResource, WriteSetChange } from './write-set.js';
