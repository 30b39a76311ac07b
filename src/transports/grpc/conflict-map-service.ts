import type { WriteSetRequest } from '../../domain/entry.js';
import type * as wire from '../../gen/writ/v1/conflict_map_service.js';
import { Validation } from '../../gen/writ/v1/types.js';
import type { AffectedLease, Explanation, LocatedProblem, TaskPair } from '../../services/api.js';
import type { MapVersion, UnmatchedResource } from '../../storage/store.js';
import { RequestReader, toTimestamp, VALIDATION_TO_WIRE } from './convert.js';
import type { Call, CallHandler } from './handler.js';
import { fromWriteSet } from './lease-service.js';
import { type RefusalViews, toLeaseEntry } from './views.js';

/** ConflictMapService over gRPC. */
export function conflictMapService(handler: CallHandler, views: RefusalViews): wire.ConflictMapServiceServer {
  return { ...documents(handler), ...questions(handler, views), ...lists(handler) };
}

type Documents = Pick<
  wire.ConflictMapServiceServer,
  'getConflictMap' | 'putConflictMap' | 'validateConflictMap' | 'previewConflictMap'
>;

function documents(handler: CallHandler): Documents {
  return {
    getConflictMap: handler.unary('ConflictMapService/GetConflictMap', async (api, call, request) => {
      const reader = new RequestReader();
      const version = reader.count(request.version, 'version');
      reader.done();
      const { value, revision } = await api.getConflictMap(call.within(request.namespace), { version });
      return { ...toMap(value), logRevision: BigInt(revision) };
    }),
    putConflictMap: handler.unary('ConflictMapService/PutConflictMap', async (api, call, request) => {
      const reader = new RequestReader();
      const expectedVersion = reader.count(request.expectedVersion, 'expected_version');
      const onLiveConflict = reader.onLiveConflict(request.onLiveConflict, 'on_live_conflict');
      reader.done();
      const { document, reason } = request;
      const input = { document, expectedVersion, reason, onLiveConflict };
      const { value, revision } = await api.putConflictMap(call.within(request.namespace), input);
      return {
        version: BigInt(value.version),
        warnings: value.warnings.map(toProblem),
        affected: value.affected.map(toAffected),
        logRevision: BigInt(revision),
      };
    }),
    validateConflictMap: handler.unary('ConflictMapService/ValidateConflictMap', async (api, call, request) => {
      const { valid, problems } = await api.validateConflictMap(call, {
        document: request.document,
        fileName: request.fileName,
      });
      return { valid, problems: problems.map(toProblem) };
    }),
    previewConflictMap: handler.unary('ConflictMapService/PreviewConflictMap', async (api, call, request) => {
      const reader = new RequestReader();
      const onLiveConflict = reader.onLiveConflict(request.onLiveConflict, 'on_live_conflict');
      reader.done();
      const input = { document: request.document, onLiveConflict };
      const { value, revision } = await api.previewConflictMap(call.within(request.namespace), input);
      return {
        accepted: value.accepted,
        problems: value.problems.map(toProblem),
        affected: value.affected.map(toAffected),
        logRevision: BigInt(revision),
      };
    }),
  };
}

type Questions = Pick<wire.ConflictMapServiceServer, 'explainConflict' | 'resolveResource' | 'getTaskMatrix'>;

function questions(handler: CallHandler, views: RefusalViews): Questions {
  return {
    explainConflict: handler.unary('ConflictMapService/ExplainConflict', async (api, call, request) => {
      const reader = new RequestReader();
      const a = fromQuestion(request.a, reader, 'a');
      const b = fromQuestion(request.b, reader, 'b');
      reader.done();
      const input = { a, b, document: request.document };
      return toExplanation(await api.explainConflict(call.within(request.namespace), input), call, views);
    }),
    resolveResource: handler.unary('ConflictMapService/ResolveResource', async (api, call, request) => {
      const found = await api.resolveResource(call.within(request.namespace), { resource: request.resource });
      const { resource, kind, alias, actions, validation } = found;
      return {
        resource,
        kind,
        alias,
        actions: actions.slice(),
        validation: validation === null ? Validation.VALIDATION_UNSPECIFIED : VALIDATION_TO_WIRE[validation],
      };
    }),
    getTaskMatrix: handler.unary('ConflictMapService/GetTaskMatrix', async (api, call, request) => {
      const pairs = await api.getTaskMatrix(call.within(request.namespace), { document: request.document });
      return { pairs: pairs.map(toTaskPair) };
    }),
  };
}

type Lists = Pick<wire.ConflictMapServiceServer, 'listConflictMapVersions' | 'listUnmatchedResources'>;

function lists(handler: CallHandler): Lists {
  return {
    listConflictMapVersions: handler.unary('ConflictMapService/ListConflictMapVersions', async (api, call, request) => {
      const reader = new RequestReader();
      const page = reader.page(request.page, 'page');
      reader.done();
      const { items, nextToken } = await api.listConflictMapVersions(call.within(request.namespace), { page });
      return { versions: items.map(toVersion), nextPageToken: nextToken };
    }),
    listUnmatchedResources: handler.unary('ConflictMapService/ListUnmatchedResources', async (api, call, request) => {
      const reader = new RequestReader();
      const page = reader.page(request.page, 'page');
      reader.done();
      const { items, nextToken } = await api.listUnmatchedResources(call.within(request.namespace), { page });
      return { resources: items.map(toUnmatched), nextPageToken: nextToken };
    }),
  };
}

function toMap(map: MapVersion | null): Omit<wire.GetConflictMapResponse, 'logRevision'> {
  if (map === null) return { document: '', version: 0n, author: '', reason: '' };
  return {
    document: map.text,
    version: BigInt(map.version),
    author: map.author,
    reason: map.reason,
    createdAt: toTimestamp(map.createdAt),
  };
}

function toVersion(map: MapVersion): wire.ConflictMapVersion {
  return {
    version: BigInt(map.version),
    author: map.author,
    reason: map.reason,
    createdAt: toTimestamp(map.createdAt),
  };
}

function toUnmatched(seen: UnmatchedResource): wire.UnmatchedResource {
  return { resource: seen.resource, times: BigInt(seen.times), lastSeenAt: toTimestamp(seen.lastSeenAt) };
}

function toProblem(problem: LocatedProblem): wire.MapProblem {
  const { code, message, path, line, column, warning } = problem;
  return { code, message, path, line, column, warning };
}

function toAffected(affected: AffectedLease): wire.AffectedLease {
  return {
    leaseId: affected.leaseId,
    runId: affected.runId,
    generation: affected.generation,
    added: affected.added.map((entry) => toLeaseEntry(entry)),
    conflictsWith: affected.conflictsWith.slice(),
    ended: affected.ended,
    noLongerGranted: affected.noLongerGranted,
  };
}

function fromQuestion(side: wire.WriteSet | undefined, reader: RequestReader, field: string): WriteSetRequest {
  if (side === undefined) {
    reader.wrong(field, 'is required');
    return { entries: [], task: null, resourceSet: null };
  }
  return fromWriteSet(side, '', reader, `${field}.`);
}

function toExplanation(found: Explanation, call: Call, views: RefusalViews): wire.ExplainConflictResponse {
  return {
    conflict: found.conflict,
    steps: found.steps.slice(),
    entriesA: found.entriesA.map((entry) => toLeaseEntry(entry)),
    entriesB: found.entriesB.map((entry) => toLeaseEntry(entry)),
    refusalA: found.refusalA === null ? undefined : views.refusal(found.refusalA, call.principal),
    refusalB: found.refusalB === null ? undefined : views.refusal(found.refusalB, call.principal),
  };
}

function toTaskPair(pair: TaskPair): wire.TaskPair {
  return {
    ...pair,
    because: pair.because.slice(),
    inputChanges: pair.inputChanges.slice(),
    collisions: pair.collisions.map((collision) => ({ ...collision, rules: collision.rules.slice() })),
  };
}
