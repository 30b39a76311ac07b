import { generateKeyPairSync, type KeyPairKeyObjectResult, sign } from 'node:crypto';
import { GENESIS_HASH, hashEvent } from '../../src/engine/hash-chain.js';
import type { Checkpoint } from '../../src/services/api.js';
import { checkpointStatement, keyFingerprint } from '../../src/services/checkpoint-signature.js';
import type { EventRecord } from '../../src/storage/store.js';

/** Logs as they are exported, with hashes and signatures that hold. */

export const SAMPLE_KEYS = generateKeyPairSync('ed25519');

export const publicPemOf = ({ publicKey }: KeyPairKeyObjectResult): string =>
  publicKey.export({ type: 'spki', format: 'pem' }).toString();

/** Adds an event that follows the last one. */
export function append(events: EventRecord[], more: Partial<EventRecord> = {}): EventRecord {
  const unhashed = {
    namespace: 'default',
    revision: events.length + 1,
    time: 1_764_425_000_000_000 + events.length,
    batchId: '00000000-0000-4000-8000-000000000001',
    kind: 'lease_granted',
    bodyVersion: 1,
    actor: 'svc:runner',
    runId: '0'.repeat(32),
    leaseId: '',
    resources: ['release/prod-eu'],
    requestIds: [],
    body: '{}',
    texts: [],
    ...more,
    prevHash: events.at(-1)?.hash ?? GENESIS_HASH,
  };
  const event = { ...unhashed, hash: hashEvent(unhashed) };
  events.push(event);
  return event;
}

/** A signed checkpoint at that event. */
export function checkpointAt({ namespace, revision, hash, time }: EventRecord, keys = SAMPLE_KEYS): Checkpoint {
  const statement = { namespace, revision, hash, time: time + 5 };
  const publicKeyPem = publicPemOf(keys);
  return {
    ...statement,
    signature: sign(null, checkpointStatement(statement), keys.privateKey),
    keyId: keyFingerprint(publicKeyPem).slice(0, 16),
    publicKeyPem,
  };
}
