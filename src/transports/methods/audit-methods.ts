import type { JsonObject } from '@bufbuild/protobuf';
import { protoJson } from '../../contract/proto-json.js';
import * as wire from '../../gen/writ/v1/audit_service.js';
import { turnOfOnesOwn } from '../../platform/portions.js';
import type { Checkpoint, CheckpointPlace } from '../../services/api.js';
import type { EventRecord } from '../../storage/store.js';
import { RequestReader, toTimestamp } from '../messages/convert.js';
import type { Parts, UnaryMethods } from './method.js';

/** Stock clients take messages up to 4 MiB; an event may be about as large as a conflict map, 1 MiB. */
const MAX_PART_BYTES = 256 << 10;

/** The methods of AuditService with one answer. */
export const auditMethods: UnaryMethods<wire.AuditServiceServer> = {
  listEvents: async (api, call, request) => {
    const reader = new RequestReader();
    const afterRevision = reader.count(request.afterRevision, 'after_revision');
    const page = reader.page(request.page, 'page');
    reader.done();
    const { runId, leaseId, resource, kinds, requestId, newestFirst } = request;
    const query = { runId, leaseId, resource, kinds, requestId, newestFirst, afterRevision, page };
    const { items, nextToken, firstRevision } = await api.listEvents(call.within(request.namespace), query);
    return { events: items.map(toEvent), nextPageToken: nextToken, firstRevision: BigInt(firstRevision) };
  },
  findIds: async (api, call, { namespace, beginning }) => {
    const { runIds, leaseIds, more } = await api.findIds(call.within(namespace), { beginning });
    return { runIds: [...runIds], leaseIds: [...leaseIds], more };
  },
  eraseTexts: async (api, call, { namespace, runId, reason }) => {
    const { value, revision } = await api.eraseTexts(call.within(namespace), { runId, reason });
    return { erased: BigInt(value.erased), logRevision: BigInt(revision) };
  },
  cutLog: async (api, call, request) => {
    const reader = new RequestReader();
    const checkpoint = readCheckpoint(reader, request.checkpoint);
    reader.done();
    const { reason, evenYoung } = request;
    const archiveDigest = Buffer.from(request.archiveDigest).toString('hex');
    const input = { checkpoint, archiveDigest, reason, evenYoung };
    const { value, revision } = await api.cutLog(call.within(request.namespace), input);
    return {
      firstRevision: BigInt(value.firstRevision),
      removed: BigInt(value.removed),
      left: BigInt(value.left),
      logRevision: BigInt(revision),
    };
  },
  listCheckpoints: async (api, call, request) => {
    const reader = new RequestReader();
    const page = reader.page(request.page, 'page');
    reader.done();
    const { items, nextToken } = await api.listCheckpoints(call.within(request.namespace), { page });
    const checkpoints = items.map(({ sentTo, ...checkpoint }) => ({ checkpoint: toCheckpoint(checkpoint), sentTo }));
    return { checkpoints, nextPageToken: nextToken };
  },
  getCheckpoint: async (api, call, request) => {
    const reader = new RequestReader();
    const at = placeOf(reader, request);
    reader.done();
    return { checkpoint: toCheckpoint(await api.getCheckpoint(call.within(request.namespace), { at })) };
  },
};

/** AuditService.ExportEvents. */
export const exportEvents: Parts<wire.ExportEventsRequest, wire.ExportEventsResponse> = (api, call, request) => {
  const reader = new RequestReader();
  const afterRevision = reader.count(request.afterRevision, 'after_revision');
  reader.done();
  return inParts(api.exportEvents(call.within(request.namespace), { afterRevision }));
};

function placeOf(reader: RequestReader, { place }: wire.GetCheckpointRequest): CheckpointPlace {
  if (place === undefined) return 'head';
  if (place.$case === 'revision') return { revision: reader.count(place.value, 'revision') };
  return { before: reader.timestamp(place.value, 'before') ?? 0 };
}

function toCheckpoint(checkpoint: Checkpoint): wire.Checkpoint {
  const { namespace, revision, hash, time, signature, keyId, publicKeyPem } = checkpoint;
  return {
    namespace,
    revision: BigInt(revision),
    hash: Buffer.from(hash, 'hex'),
    time: toTimestamp(time),
    signature: Buffer.from(signature),
    keyId,
    publicKey: publicKeyPem,
  };
}

/** One that is not there is one that nobody signed. */
function readCheckpoint(reader: RequestReader, checkpoint = wire.Checkpoint.create()): Checkpoint {
  return {
    namespace: checkpoint.namespace,
    revision: reader.count(checkpoint.revision, 'checkpoint.revision'),
    hash: Buffer.from(checkpoint.hash).toString('hex'),
    time: reader.timestamp(checkpoint.time, 'checkpoint.time') ?? 0,
    signature: checkpoint.signature,
    keyId: checkpoint.keyId,
    publicKeyPem: checkpoint.publicKey,
  };
}

/** Batches of the log cut into messages that every client can receive. */
async function* inParts(batches: AsyncIterable<readonly EventRecord[]>): AsyncGenerator<wire.ExportEventsResponse> {
  for await (const batch of batches) {
    let events: wire.Event[] = [];
    let bytes = 0;
    for (const record of batch) {
      const size = sizeOf(record);
      if (events.length > 0 && bytes + size > MAX_PART_BYTES) {
        await turnOfOnesOwn();
        yield { events };
        events = [];
        bytes = 0;
      }
      events.push(toEvent(record));
      bytes += size;
    }
    await turnOfOnesOwn();
    if (events.length > 0) yield { events };
  }
}

/** About as much as the event takes on the wire. */
function sizeOf(record: EventRecord): number {
  const texts = record.texts.reduce((sum, { text }) => sum + 60 + Buffer.byteLength(text), 0);
  const resources = record.resources.reduce((sum, resource) => sum + resource.length * 2, 0);
  return 400 + Buffer.byteLength(record.body) + texts + resources;
}

/** One event in proto3 JSON. The body, which can have some MiB, goes no way through bytes and back. */
export function eventJson(record: EventRecord): JsonObject {
  const event = protoJson(wire.Event, toEvent({ ...record, body: '' }), { alwaysEmitImplicit: true }) as JsonObject;
  return { ...event, body: record.body };
}

/** One event, as it is told. */
export function toEvent(record: EventRecord): wire.Event {
  return {
    namespace: record.namespace,
    revision: BigInt(record.revision),
    time: toTimestamp(record.time),
    kind: record.kind,
    actor: record.actor,
    runId: record.runId,
    leaseId: record.leaseId,
    resources: record.resources.slice(),
    body: record.body,
    bodyVersion: record.bodyVersion,
    batchId: record.batchId,
    prevHash: Buffer.from(record.prevHash, 'hex'),
    hash: Buffer.from(record.hash, 'hex'),
    requestIds: record.requestIds.slice(),
    texts: record.texts.map(({ digest, salt, text }) => ({
      digest: Buffer.from(digest, 'hex'),
      salt: Buffer.from(salt, 'hex'),
      text,
    })),
  };
}
