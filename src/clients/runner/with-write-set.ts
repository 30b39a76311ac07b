import type { WritClient } from '../common/connect.js';
import { type AcquireRequest, acquire } from './acquire.js';
import type { Lease } from './lease.js';

/**
 * Runs `work` with a write set and gives it back on every way out: a return, a throw, an abort. When the lease is lost
 * meanwhile it throws LeaseLostError, even if `work` ended well: it may have written without authority, and somebody
 * should know.
 *
 * When the request's own `signal` aborts (see `interruptSignal` for SIGTERM), so does that of the work; the lease is held
 * until the work has ended, since what it has sent may still arrive.
 *
 * @example
 * await withWriteSet(writ, { runId, resources: [{ resource: 'release/prod-eu' }], targets }, async (lease, signal) => {
 *   await lease.fetch(url, { method: 'PUT', body, writes: ['release/prod-eu'] });
 * });
 */
export async function withWriteSet<T>(
  client: WritClient,
  request: AcquireRequest,
  work: (lease: Lease, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const lease = await acquire(client, request);
  const interrupt = () => lease.interrupt(request.signal?.reason);
  request.signal?.addEventListener('abort', interrupt, { once: true });
  let result: T;
  try {
    // It may have come while the grant was on its way.
    if (request.signal?.aborted === true) interrupt();
    result = await work(lease, lease.signal);
  } finally {
    request.signal?.removeEventListener('abort', interrupt);
    // Its failure must not hide that of the work; the lease then ends at its expiry.
    await lease.release().catch(() => undefined);
  }
  if (lease.lost !== undefined) throw lease.lost;
  return result;
}
