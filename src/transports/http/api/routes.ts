import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import type { z } from '@hono/zod-openapi';
import { METHOD_ROUTES, type MethodRoute, methodOfRoute } from '../../../auth/roles.js';
import type { ApiRoute, Parameter } from './api-route.js';
import { localName, type Rpc, rpcOf } from './rpcs.js';
import { Shapes } from './shapes.js';

/** The routes that say over HTTP what an RPC says over gRPC, and how a request of theirs becomes the RPC's. */

/** What a route says beside its RPC; nothing for most. */
interface RouteOptions {
  /** Parameters of the query that have another name than the field of the request. */
  readonly query?: Readonly<Record<string, string>>;
  /** The field that `If-Match` fills: the version that a change is made against. */
  readonly ifMatch?: string;
  /** The field of the answer that is its `ETag`. */
  readonly etag?: string;
  /** Where the request names its namespace; null: it is about none. */
  readonly namespace?: readonly string[] | null;
  /** Fields that cannot be given here. */
  readonly without?: readonly string[];
  /** Where two routes are of one RPC. */
  readonly operationId?: string;
  /** The same, and their bodies differ: what this one is called, and which field it is about. */
  readonly body?: { readonly name: string; readonly needs: string };
}

const NAMESPACE = ['namespace'];

const OPTIONS: Partial<Record<MethodRoute, RouteOptions>> = {
  'GET /v1/conflict-map': { etag: 'version' },
  'PUT /v1/conflict-map': { ifMatch: 'expected_version', etag: 'version' },
  'POST /v1/conflict-map/validate': { namespace: null },
  'GET /v1/conflict-map/matrix': { without: ['document'] },
  'POST /v1/conflict-map/matrix': { operationId: 'getTaskMatrixOf' },
  'GET /v1/resources/resolve': { query: { name: 'resource' } },
  'POST /v1/leases/preview': { namespace: ['request', 'namespace'] },
  'POST /v1/leases/release': {
    operationId: 'releaseLeaseByKey',
    body: { name: 'ReleaseLeaseByKeyRequest', needs: 'acquire_key' },
  },
  'GET /v1/keys': { namespace: null },
  'POST /v1/keys/rotate': { namespace: null },
  'POST /v1/keys/{keyId}/retire': { namespace: null },
  'POST /v1/credentials/introspect': { namespace: null },
  'GET /v1/namespaces': { namespace: null },
  'POST /v1/namespaces': { namespace: null },
  'GET /v1/namespaces/{name}': { namespace: null },
};

/** Spoken over HTTP in forms of their own, or not by an RPC's request alone. */
const NOT_BY_REQUEST: ReadonlySet<MethodRoute> = new Set<MethodRoute>([
  'POST /oauth2/introspect',
  'GET /v1/fence/check',
  'POST /access/v1/evaluation',
  'POST /access/v1/evaluations',
  'GET /v1/conflict-map/schema',
  'POST /v1/conflict-map/test',
  'POST /v1/conflict-map/diff',
  'POST /v1/conflict-map/rollback',
  'GET /v1/waiters',
  'GET /v1/fence/changes',
  'GET /v1/events/stream',
  'GET /v1/events/export',
  'GET /v1/principal',
]);

export interface RpcRoute extends ApiRoute {
  readonly rpc: Rpc;
  readonly parameters: readonly RpcParameter[];
  /** Of the request, what `If-Match` fills. */
  readonly versionField: DescField | null;
  readonly etag: string | null;
}

export interface RpcParameter extends Parameter {
  /** From the outside in, of the RPC's request. */
  readonly fields: readonly DescField[];
}

/** Those of RPCs, and the shapes that they are made of; other answers consist of `answered`, too. */
export function rpcRoutes(answered: readonly DescMessage[]): {
  readonly routes: readonly RpcRoute[];
  readonly shapes: Shapes;
} {
  const plans = METHOD_ROUTES.filter((route) => !NOT_BY_REQUEST.has(route)).map(planOf);
  const outputs = [...plans.map(({ rpc }) => rpc.output), ...answered];
  const shapes = new Shapes({
    elsewhere: merged(plans.filter(({ hasBody, options }) => hasBody && !options.body).map(({ placed }) => placed)),
    answered: new Set(outputs.flatMap((message) => [...messagesIn(message)])),
  });
  return { shapes, routes: plans.map((plan) => toRoute(plan, shapes)) };
}

interface Place {
  readonly name: string;
  readonly place: Parameter['place'];
  readonly fields: readonly DescField[];
}

/** One message can be the body of a route and a part of another's. */
function merged(all: readonly Placed[]): Placed {
  const fields = new Map<string, ReadonlySet<string>>();
  for (const [message, placed] of all.flatMap((one) => [...one]))
    fields.set(message, new Set([...(fields.get(message) ?? []), ...placed]));
  return fields;
}

/** By message, the fields that bodies do not have. */
type Placed = ReadonlyMap<string, ReadonlySet<string>>;

/** A route before its shapes are there: what is given where. */
interface Plan {
  readonly route: MethodRoute;
  readonly options: RouteOptions;
  readonly rpc: Rpc;
  readonly hasBody: boolean;
  readonly places: readonly Place[];
  readonly ifMatch: DescField | null;
  readonly placed: Placed;
}

function planOf(route: MethodRoute): Plan {
  const options = OPTIONS[route] ?? {};
  const method = methodOfRoute(route);
  if (method === null) throw new Error(`${route} is of no RPC`);
  const rpc = rpcOf(method);
  const { input } = rpc;
  const hasBody = !route.startsWith('GET ');
  const places: Place[] = [];
  const place = (name: string, where: Place['place'], path: readonly string[]): void => {
    places.push({ name, place: where, fields: fieldsAt(input, path) });
  };
  for (const [, name = ''] of route.matchAll(/\{(\w+)\}/g)) place(name, 'path', [snakeCase(name)]);
  const namespace = options.namespace === undefined ? NAMESPACE : options.namespace;
  if (namespace !== null) place('namespace', 'query', namespace);
  const renamed = new Map(Object.entries(options.query ?? {}).map(([name, field]) => [field, name]));
  const key = input.fields.find(({ name }) => name === 'idempotency_key');
  if (key !== undefined) place('Idempotency-Key', 'header', [key.name]);
  const ifMatch = options.ifMatch === undefined ? null : (fieldsAt(input, [options.ifMatch])[0] ?? null);
  if (!hasBody) {
    const taken = new Set(places.map(({ fields }) => fields[0]));
    for (const field of input.fields.filter((one) => !taken.has(one) && options.without?.includes(one.name) !== true)) {
      if (field.name === 'page') {
        place('page_size', 'query', ['page', 'page_size']);
        place('page_token', 'query', ['page', 'page_token']);
      } else place(renamed.get(field.name) ?? field.name, 'query', [field.name]);
    }
  }
  return { route, options, rpc, hasBody, places, ifMatch, placed: placedBy(places, ifMatch) };
}

/** The body of a route, which has a name of its own where another route of the RPC has another one. */
function bodyOf({ rpc, options, placed }: Plan, shapes: Shapes): z.ZodType {
  if (options.body === undefined) return shapes.request(rpc.input);
  const { name, needs } = options.body;
  const needed = fieldsAt(rpc.input, [needs])[0] as DescField;
  const elsewhere = new Set(placed.get(rpc.input.typeName));
  for (const other of needed.oneof?.fields ?? []) if (other !== needed) elsewhere.add(other.name);
  return shapes.request(rpc.input, { name, elsewhere, needed });
}

function placedBy(places: readonly Place[], ifMatch: DescField | null): Placed {
  const placed = new Map<string, Set<string>>();
  // What is in the path takes the place of whatever else the contract would have there.
  const instead = places.flatMap((one) => (one.place === 'path' ? (lastOf(one).oneof?.fields ?? []) : []));
  const all = [...places.map(lastOf), ...instead, ifMatch];
  for (const field of all) {
    if (field === null) continue;
    const known = placed.get(field.parent.typeName) ?? new Set();
    placed.set(field.parent.typeName, known.add(field.name));
  }
  return placed;
}

function toRoute(plan: Plan, shapes: Shapes): RpcRoute {
  const { route, options, rpc, hasBody, places, ifMatch } = plan;
  return {
    route,
    rpc,
    operationId: options.operationId ?? localName(rpc.method.slice(rpc.method.indexOf('/') + 1)),
    comment: rpc.comment,
    parameters: places.map((place) => toParameter(place, shapes)),
    body: hasBody ? bodyOf(plan, shapes) : null,
    bodyMessage: hasBody ? rpc.input : null,
    answer: { type: 'application/json', schema: shapes.answer(rpc.output), hasTag: options.etag !== undefined },
    scope: options.namespace === null ? 'none' : 'namespace',
    needsVersion: ifMatch !== null,
    versionField: ifMatch,
    etag: options.etag ?? null,
  };
}

function toParameter(place: Place, shapes: Shapes): RpcParameter {
  const field = lastOf(place);
  return {
    ...place,
    field: place.fields.map(({ name }) => name).join('.'),
    schema: shapes.member(field, place.place === 'path' || undefined),
    form: FORMS[field.scalar ?? ScalarType.STRING] ?? 'text',
    isList: field.fieldKind === 'list',
  };
}

const FORMS: Partial<Record<ScalarType, Parameter['form']>> = {
  [ScalarType.BOOL]: 'truth',
  [ScalarType.UINT32]: 'number',
  [ScalarType.INT32]: 'number',
};

const lastOf = ({ fields }: Place): DescField => fields[fields.length - 1] as DescField;

function fieldsAt(message: DescMessage, path: readonly string[]): DescField[] {
  const [name, ...rest] = path;
  const field = message.fields.find((one) => one.name === name);
  if (field === undefined) throw new Error(`${message.typeName} has no ${name}`);
  if (rest.length === 0) return [field];
  if (field.message === undefined) throw new Error(`${message.typeName}.${name} is no message`);
  return [field, ...fieldsAt(field.message, rest)];
}

function messagesIn(message: DescMessage, found = new Set<string>()): Set<string> {
  if (found.has(message.typeName)) return found;
  found.add(message.typeName);
  for (const field of message.fields) if (field.message !== undefined) messagesIn(field.message, found);
  return found;
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
