import type * as wire from '../../gen/writ/v1/audit_service.js';
import type { EventRecord } from '../../storage/store.js';
import { RequestReader, toTimestamp } from './convert.js';
import type { CallHandler } from './handler.js';

/** Stock clients take messages up to 4 MiB; an event may be about as large as a conflict map, 1 MiB. */
const MAX_PART_BYTES = 1 << 20;

/** AuditService over gRPC. */
export function auditService(handler: CallHandler): wire.AuditServiceServer {
  return {
    listEvents: handler.unary('AuditService/ListEvents', async (api, call, request) => {
      const reader = new RequestReader();
      const afterRevision = reader.count(request.afterRevision, 'after_revision');
      const page = reader.page(request.page, 'page');
      reader.done();
      const { runId, leaseId, resource, kinds, requestId, newestFirst } = request;
      const query = { runId, leaseId, resource, kinds, requestId, newestFirst, afterRevision, page };
      const { items, nextToken } = await api.listEvents(call.within(request.namespace), query);
      return { events: items.map(toEvent), nextPageToken: nextToken };
    }),
    exportEvents: handler.stream('AuditService/ExportEvents', (api, call, request) => {
      const reader = new RequestReader();
      const afterRevision = reader.count(request.afterRevision, 'after_revision');
      reader.done();
      return inParts(api.exportEvents(call.within(request.namespace), { afterRevision }));
    }),
    getCheckpoint: handler.unary('AuditService/GetCheckpoint', async (api, call, request) => {
      const { namespace, revision, hash, time, signature, keyId, publicKeyPem } = await api.getCheckpoint(
        call.within(request.namespace),
      );
      return {
        checkpoint: {
          namespace,
          revision: BigInt(revision),
          hash: Buffer.from(hash, 'hex'),
          time: toTimestamp(time),
          signature: Buffer.from(signature),
          keyId,
          publicKey: publicKeyPem,
        },
      };
    }),
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
        yield { events };
        events = [];
        bytes = 0;
      }
      events.push(toEvent(record));
      bytes += size;
    }
    if (events.length > 0) yield { events };
  }
}

/** About as much as the event takes on the wire. */
function sizeOf(record: EventRecord): number {
  return (
    400 + Buffer.byteLength(record.body) + record.resources.reduce((sum, resource) => sum + resource.length * 2, 0)
  );
}

function toEvent(record: EventRecord): wire.Event {
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
  };
}
