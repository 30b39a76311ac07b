import type { WriteSetRequest } from '../../domain/entry.js';
import type * as wire from '../../gen/writ/v1/conflict_map_service.js';
import { Validation } from '../../gen/writ/v1/types.js';
import type { AffectedLease, At, Explanation, LocatedProblem, PutMapOutcome, TaskPair } from '../../services/api.js';
import type { MapVersion, UnmatchedResource } from '../../storage/store.js';
import { RequestReader, toOptionalDuration, toTimestamp, VALIDATION_TO_WIRE } from '../messages/convert.js';
import { fromWriteSet } from '../messages/lease-messages.js';
import { type RefusalViews, toLeaseEntry } from '../messages/views.js';
import type { MethodCall, UnaryMethods } from './method.js';
import { rehearsalMethods } from './rehearsal-methods.js';

type Methods = UnaryMethods<wire.ConflictMapServiceServer>;

/** The methods of ConflictMapService. */
export function conflictMapMethods(views: RefusalViews): Methods {
  return { ...documents, ...questions(views), ...lists, ...rehearsalMethods };
}

type Documents = Pick<Methods, 'getConflictMap' | 'putConflictMap' | 'validateConflictMap' | 'previewConflictMap'>;

const documents: Documents = {
  getConflictMap: async (api, call, request) => {
    const reader = new RequestReader();
    const version = reader.count(request.version, 'version');
    reader.done();
    const { value, revision } = await api.getConflictMap(call.within(request.namespace), { version });
    return { ...toMap(value), logRevision: BigInt(revision) };
  },
  putConflictMap: async (api, call, request) => {
    const reader = new RequestReader();
    const expectedVersion = reader.count(request.expectedVersion, 'expected_version');
    const onLiveConflict = reader.onLiveConflict(request.onLiveConflict, 'on_live_conflict');
    reader.done();
    const { document, reason } = request;
    const input = { document, expectedVersion, reason, onLiveConflict };
    return toPutAnswer(await api.putConflictMap(call.within(request.namespace), input));
  },
  validateConflictMap: async (api, call, request) => {
    const { valid, problems } = await api.validateConflictMap(call, {
      document: request.document,
      fileName: request.fileName,
    });
    return { valid, problems: problems.map(toProblem) };
  },
  previewConflictMap: async (api, call, request) => {
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
  },
};

type Questions = Pick<Methods, 'explainConflict' | 'resolveResource' | 'getTaskMatrix'>;

function questions(views: RefusalViews): Questions {
  return {
    explainConflict: async (api, call, request) => {
      const reader = new RequestReader();
      const a = fromQuestion(request.a, reader, 'a');
      const b = fromQuestion(request.b, reader, 'b');
      reader.done();
      const input = { a, b, document: request.document };
      return toExplanation(await api.explainConflict(call.within(request.namespace), input), call, views);
    },
    resolveResource: async (api, call, request) => {
      const found = await api.resolveResource(call.within(request.namespace), { resource: request.resource });
      const { resource, kind, alias, actions, validation, maxViewAge } = found;
      return {
        resource,
        kind,
        alias,
        actions: actions.slice(),
        validation: validation === null ? Validation.VALIDATION_UNSPECIFIED : VALIDATION_TO_WIRE[validation],
        maxViewAge: toOptionalDuration(maxViewAge),
      };
    },
    getTaskMatrix: async (api, call, request) => {
      const pairs = await api.getTaskMatrix(call.within(request.namespace), { document: request.document });
      return { pairs: pairs.map(toTaskPair) };
    },
  };
}

type Lists = Pick<Methods, 'listConflictMapVersions' | 'listUnmatchedResources'>;

const lists: Lists = {
  listConflictMapVersions: async (api, call, request) => {
    const reader = new RequestReader();
    const page = reader.page(request.page, 'page');
    reader.done();
    const { items, nextToken } = await api.listConflictMapVersions(call.within(request.namespace), { page });
    return { versions: items.map(toVersion), nextPageToken: nextToken };
  },
  listUnmatchedResources: async (api, call, request) => {
    const reader = new RequestReader();
    const page = reader.page(request.page, 'page');
    reader.done();
    const { items, nextToken } = await api.listUnmatchedResources(call.within(request.namespace), { page });
    return { resources: items.map(toUnmatched), nextPageToken: nextToken };
  },
};

/** What a put, or a rollback, did. */
export function toPutAnswer({ value, revision }: At<PutMapOutcome>): wire.PutConflictMapResponse {
  return {
    version: BigInt(value.version),
    warnings: value.warnings.map(toProblem),
    affected: value.affected.map(toAffected),
    logRevision: BigInt(revision),
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

export function toProblem(problem: LocatedProblem): wire.MapProblem {
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

function toExplanation(found: Explanation, call: MethodCall, views: RefusalViews): wire.ExplainConflictResponse {
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
