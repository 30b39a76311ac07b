import { timestampMicros } from '../clients/common/time.js';
import type { Event, Checkpoint as WireCheckpoint } from '../gen/writ/v1/audit_service.js';
import type { Checkpoint } from '../services/api.js';
import type { EventRecord } from '../storage/store.js';

/** An event of the API as the log has it: what its hash is computed from. */
export function toRecord(event: Event): EventRecord {
  return {
    namespace: event.namespace,
    revision: Number(event.revision),
    time: timestampMicros(event.time) ?? 0,
    batchId: event.batchId,
    kind: event.kind,
    bodyVersion: event.bodyVersion,
    actor: event.actor,
    runId: event.runId,
    leaseId: event.leaseId,
    resources: event.resources,
    requestIds: event.requestIds,
    body: event.body,
    prevHash: hex(event.prevHash),
    hash: hex(event.hash),
    texts: event.texts.map(({ digest, salt, text }) => ({ digest: hex(digest), salt: hex(salt), text })),
  };
}

export function toCheckpoint(checkpoint: WireCheckpoint): Checkpoint {
  return {
    namespace: checkpoint.namespace,
    revision: Number(checkpoint.revision),
    hash: hex(checkpoint.hash),
    time: timestampMicros(checkpoint.time) ?? 0,
    signature: checkpoint.signature,
    keyId: checkpoint.keyId,
    publicKeyPem: checkpoint.publicKey,
  };
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
