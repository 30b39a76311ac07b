/**
 * The runner kit: take a write set, keep it while the work goes on, give it back.
 *
 * @example
 * import { connectWrit, withWriteSet } from 'writ/runner';
 *
 * const writ = connectWrit({ endpoint: '127.0.0.1:7410', token });
 * await withWriteSet(writ, { runId, resources: [{ resource: 'release/prod-eu', actions: ['promote'] }] }, async (lease, signal) => {
 *   // … every write carries lease.id and lease.token('release/prod-eu'), and stops when `signal` fires
 * });
 */
export { type ConnectOptions, connectWrit, type WritClient } from '../common/connect.js';
export { type WritCode, WritError, type WritViolation } from '../common/errors.js';
export { toTimestamp } from '../common/time.js';
export type { TlsOptions } from '../common/tls.js';
export { type AcquireRequest, acquire, type RequestedResource, withWriteSet } from './acquire.js';
export { kindName, LeaseLostError, RefusedError } from './errors.js';
export { Lease, type LeaseWatch } from './lease.js';
