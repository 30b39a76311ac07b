import { Fault } from '../domain/fault.js';
import type { Lease } from '../domain/lease.js';

/** Of a lease, and of each of its entries, beside their names: in an answer, about. */
const LEASE_OVERHEAD = 256;
const ENTRY_OVERHEAD = 64;
/** Of leases in an answer that cannot be cut into pages: stock clients take 4 MiB. */
const MAX_ANSWER_BYTES = 3 << 20;

/** What a lease takes of an answer, about. */
export function leaseBytes({ purpose, entries }: Lease): number {
  let bytes = LEASE_OVERHEAD + Buffer.byteLength(purpose);
  for (const { resource, actions, impliedBy, observedVersion } of entries)
    bytes += ENTRY_OVERHEAD + Buffer.byteLength([resource, impliedBy, observedVersion, ...actions].join('  '));
  return bytes;
}

/** Throws where an answer about all of them would not reach a stock client, who then could not know what was done. */
export function checkAnswerFits(leases: readonly Lease[]): void {
  let bytes = 0;
  for (const lease of leases) bytes += leaseBytes(lease);
  if (bytes <= MAX_ANSWER_BYTES) return;
  const text = `the ${leases.length} leases are large, and the answer about all of them would have about ${bytes} bytes; at most ${MAX_ANSWER_BYTES} are allowed: name fewer in one call`;
  throw new Fault('resource_exhausted', 'ANSWER_TOO_LARGE', text, {
    metadata: { max_bytes: String(MAX_ANSWER_BYTES) },
  });
}
