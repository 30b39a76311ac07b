import { createHash } from 'node:crypto';
import type { EventRecord } from '../storage/store.js';

/**
 * The chain that makes the log tamper-evident (A2, P7). The hash of an event is
 * ```
 * SHA-256( bytes(prev_hash, 32) ++ UTF-8( canonical JSON, RFC 8785, of {
 *   actor, batch_id, body, body_version, kind, lease_id, namespace, request_ids, resources, revision, run_id, time } ) )
 * ```
 * where `time` is integer microseconds, `body` the text as stored, and every other column is in: a change of any of
 * them, or of the order, changes the hash of that event, and with it of all later ones.
 */

/** What the first event of a log follows. */
export const GENESIS_HASH = '0'.repeat(64);

/** Everything that is hashed: free text is not, but its salted hash is a part of the body. */
export type HashedEvent = Omit<EventRecord, 'hash' | 'texts'>;

const HASH = /^[0-9a-f]{64}$/;

/**
 * The hash of an event, 64 lower-case hexadecimal digits.
 *
 * Throws a RangeError on what has no one canonical form: a number that is no safe integer, half of a surrogate pair
 * (which the database would store as another character), a `prevHash` that is no hash. Commands with such values are
 * refused long before; one that gets here is a bug, and must not enter the log.
 *
 * @example
 * const first = { namespace: 'default', revision: 1, prevHash: GENESIS_HASH, ...rest };
 * const event = { ...first, hash: hashEvent(first) };
 */
export function hashEvent(event: HashedEvent): string {
  if (!HASH.test(event.prevHash)) throw new RangeError('prevHash must be 64 lower-case hexadecimal digits');
  return createHash('sha256').update(event.prevHash, 'hex').update(canonicalForm(event), 'utf8').digest('hex');
}

/**
 * The canonical JSON that is hashed, built by hand because every event of every append passes here. The order of the
 * keys is theirs by UTF-16 code units; for strings and safe integers JSON.stringify is what RFC 8785 prescribes. A
 * property test holds it against the library `canonicalize`.
 */
export function canonicalForm(event: HashedEvent): string {
  return (
    `{"actor":${text(event.actor)},"batch_id":${text(event.batchId)},"body":${text(event.body)}` +
    `,"body_version":${integer(event.bodyVersion)},"kind":${text(event.kind)},"lease_id":${text(event.leaseId)}` +
    `,"namespace":${text(event.namespace)},"request_ids":${texts(event.requestIds)}` +
    `,"resources":${texts(event.resources)},"revision":${integer(event.revision)}` +
    `,"run_id":${text(event.runId)},"time":${integer(event.time)}}`
  );
}

function text(value: string): string {
  if (!value.isWellFormed()) throw new RangeError('half of a surrogate pair has no canonical form');
  return JSON.stringify(value);
}

function texts(values: readonly string[]): string {
  return `[${values.map(text).join(',')}]`;
}

function integer(value: number): string {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is no integer below 2^53`);
  return JSON.stringify(value);
}
