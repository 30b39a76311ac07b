import type { JsonValue } from '@bufbuild/protobuf';
import { inNamespace } from '../../../auth/principal.js';
import { methodsAllowed } from '../../../auth/roles.js';
import { type MessageType, protoJson } from '../../../contract/proto-json.js';
import { Duration } from '../../../gen/google/protobuf/duration.js';
import { Timestamp } from '../../../gen/google/protobuf/timestamp.js';
import {
  MapProblem,
  onLiveConflictFromJSON,
  PutConflictMapResponse,
} from '../../../gen/writ/v1/conflict_map_service.js';
import { Blocker, Freeze, Lease } from '../../../gen/writ/v1/types.js';
import type { LocatedProblem, Waiter } from '../../../services/api.js';
import { mapJsonSchema } from '../../../services/conflict-map-json-schema.js';
import { RequestReader, toDuration, toTimestamp } from '../../messages/convert.js';
import { type RefusalViews, toFreezes, toLease } from '../../messages/views.js';
import { toProblem, toPutAnswer } from '../../methods/conflict-map-methods.js';
import { orDefault } from '../../namespace-of.js';
import { NO_STORE } from '../problem.js';
import { type Asked, countOf, pageIn, textOf } from './asked.js';
import { jsonText } from './json-text.js';

/** Answers to the routes that gRPC has nothing like. */

/** A message as the routes of RPCs write it. */
export function json<T>(type: MessageType<T>, message: T): JsonValue {
  return protoJson(type, message, { alwaysEmitImplicit: true });
}

export function principal({ c, caller, context }: Asked): Response {
  const namespace = orDefault(context.namespace);
  const sorted = (roles: ReadonlySet<string>): string[] => [...roles].sort();
  const single = [...(caller.namespaceRoles ?? [])].map(([name, roles]) => [name, sorted(roles)]);
  const body = {
    name: caller.name,
    roles: sorted(inNamespace(caller, namespace).roles),
    namespaceRoles: Object.fromEntries(single),
    may: methodsAllowed(caller, namespace).sort(),
  };
  return c.json(body, 200, NO_STORE);
}

export async function waiters(asked: Asked, views: RefusalViews): Promise<Response> {
  const { c, api, context, values } = asked;
  const [runId, resource] = [textOf(values.get('run_id')), textOf(values.get('resource'))];
  const { value, revision, now } = await api.listWaiters(context, { runId, resource, page: pageIn(asked) });
  const body = {
    waiters: value.items.map((waiter) => toWaiter(waiter, now, context.principal, views)),
    nextPageToken: value.nextToken,
    logRevision: String(revision),
  };
  return jsonText(c, JSON.stringify(body));
}

function toWaiter(
  { lease, place, waitingSince }: Waiter,
  now: number,
  viewer: Asked['caller'],
  views: RefusalViews,
): JsonValue {
  const { blockers, freezes, retryAfter } = place.refusal;
  return {
    lease: json(Lease, toLease(lease, now)),
    place: place.place,
    waitsFor: views.blockers(blockers, viewer).map((blocker) => json(Blocker, blocker)),
    waitingSince: json(Timestamp, toTimestamp(waitingSince)),
    waitsUntil: json(Timestamp, toTimestamp(place.waitsUntil)),
    ...(retryAfter === null ? {} : { earliestAfter: json(Duration, toDuration(retryAfter)) }),
    freezes: toFreezes(freezes, viewer).map((freeze) => json(Freeze, freeze)),
  };
}

export function mapSchema({ c }: Asked): Response {
  return c.body(JSON.stringify(mapJsonSchema()), 200, { ...NO_STORE, 'content-type': 'application/schema+json' });
}

export async function testMap({ c, api, context, body }: Asked): Promise<Response> {
  const { passed, assertions, failed, problems } = await api.testConflictMap(context, {
    document: textOf(body.document),
  });
  const told = (list: readonly LocatedProblem[]): JsonValue => list.map((one) => json(MapProblem, toProblem(one)));
  return c.json({ passed, assertions, failed: told(failed), problems: told(problems) }, 200, NO_STORE);
}

export async function diffMap({ c, api, context, body }: Asked): Promise<Response> {
  const { fromVersion, toVersion, lines } = await api.diffConflictMap(context, {
    fromVersion: countOf(body.fromVersion, 'from_version'),
    toVersion: body.toVersion === undefined ? null : countOf(body.toVersion, 'to_version'),
    document: body.document === undefined ? null : textOf(body.document),
  });
  const answer = {
    fromVersion: String(fromVersion),
    ...(toVersion === null ? {} : { toVersion: String(toVersion) }),
    differs: lines.length > 0,
    diff: lines.map((line) => `${line}\n`).join(''),
  };
  return c.json(answer, 200, NO_STORE);
}

export async function rollbackMap({ c, api, context, body, version }: Asked): Promise<Response> {
  const reader = new RequestReader();
  const onLiveConflict = reader.onLiveConflict(onLiveConflictFromJSON(body.onLiveConflict ?? 0), 'on_live_conflict');
  reader.done();
  const answer = toPutAnswer(
    await api.rollbackConflictMap(context, {
      toVersion: countOf(body.toVersion, 'to_version'),
      expectedVersion: countOf(version ?? undefined, 'expected_version'),
      reason: textOf(body.reason),
      onLiveConflict,
    }),
  );
  const headers = { etag: `"${answer.version}"`, 'cache-control': 'private, no-cache' };
  return c.json(json(PutConflictMapResponse, answer), 200, headers);
}
