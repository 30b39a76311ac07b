import { readFileSync } from 'node:fs';
import { OpenAPIHono, z } from '@hono/zod-openapi';
import { type MethodRoute, rolesForRoute } from '../../../auth/roles.js';
import type { ApiRoute } from './api-route.js';
import { DENIAL, GATEWAY_PATHS, type GatewayPath, header } from './gateway-paths.js';
import { ANSWERED, type OwnRoute, ownRoutes } from './own-routes.js';
import { type RpcRoute, rpcRoutes } from './routes.js';
import { type Shapes, said } from './shapes.js';

/** The API as an OpenAPI document, made of the same schemas that requests are read by. */

/** Of the API: a change that breaks callers makes another path. */
const VERSION = '1.0.0';

const TAGS = [
  [
    'conflict-map',
    'Conflict map',
    'Which resources there are, what touches what, and which writes exclude each other.',
  ],
  ['leases', 'Leases', 'Who may write what, who waits, and who stands in the way.'],
  ['freezes', 'Freezes', 'No grants under a pattern until it is thawed.'],
  ['in-doubt', 'In doubt', 'Tracked writes whose outcome nobody knows.'],
  ['runs', 'Runs', 'Agent runs and their contracts.'],
  ['fence', 'Fence checks', 'What target services ask before they accept a write, and tell afterwards.'],
  ['log', 'Log', 'All that happened, in order, tamper-evident.'],
  ['keys', 'Keys and credentials', 'Signing keys, and the short-lived credentials that they sign.'],
  ['namespaces', 'Namespaces', 'Conflict domains: the unit of isolation and of ordering.'],
] as const;

type Tag = (typeof TAGS)[number][0];

const TAG_OF: Readonly<Record<string, Tag>> = {
  'conflict-map': 'conflict-map',
  resources: 'conflict-map',
  rehearsals: 'conflict-map',
  leases: 'leases',
  blockers: 'leases',
  freezes: 'freezes',
  'in-doubt': 'in-doubt',
  runs: 'runs',
  fence: 'fence',
  events: 'log',
  checkpoint: 'log',
  ids: 'log',
  checkpoints: 'log',
  keys: 'keys',
  credentials: 'keys',
  namespaces: 'namespaces',
  principal: 'namespaces',
  waiters: 'leases',
};

const DESCRIPTION = `The coordinator over HTTP. Bodies are the proto3 JSON of the contract's messages: names in lowerCamelCase, times in RFC 3339, lengths of time in seconds such as "12.5s", 64-bit numbers as decimal strings, enums by their names; a request may have the other spellings of proto3 JSON, too. Members that are not known are errors. A caller says who it is by a bearer token or a client certificate; the namespace is the query parameter \`namespace\`, "default" when absent. Expected outcomes, a refusal among them, are answers with status 200; everything else is a problem (RFC 9457) whose \`reason\` is a stable code.`;

const Problem = z
  .object({
    type: z.string().openapi({ description: 'Always about:blank.' }),
    title: z.string().openapi({ description: 'The status in words.' }),
    status: z.int().openapi({ description: 'The status.' }),
    detail: z.string().openapi({ description: 'What happened, and what to do.' }),
    reason: z.string().openapi({ description: 'A stable code, as over gRPC.' }),
    violations: z
      .array(
        z.object({
          field: z.string().openapi({ description: 'The member, parameter or header that is wrong.' }),
          description: z.string().openapi({ description: 'What is wrong, and what would be accepted.' }),
        }),
      )
      .optional()
      .openapi({ description: 'All that is wrong with the request.' }),
    metadata: z.record(z.string(), z.string()).optional().openapi({ description: 'Facts that a program can act on.' }),
    currentVersion: z.string().optional().openapi({ description: 'Of 412 and 428: the version that there is.' }),
  })
  .openapi('Problem', { description: 'Why a request was not answered (RFC 9457).' });

const PROBLEMS: Readonly<Record<number, string>> = {
  400: 'The request is wrong; `violations` name what.',
  401: 'Nobody knows who calls.',
  403: 'The caller may not do this, or not there.',
  404: 'There is no such thing.',
  409: 'It cannot be done as things are.',
  429: 'Too much, or too often; `retry-after` says when to try again.',
  500: "The coordinator's own trouble; its log has the cause under the request id.",
  503: 'It cannot be decided now; try again, with the same key where there is one.',
};

const OF_A_BODY: Readonly<Record<number, string>> = {
  413: 'The body is too large.',
  415: 'The body is not of the type that is read here, which `accept` names, or compressed: `accept-encoding` names what is read.',
};

const CONDITIONS: Readonly<Record<number, string>> = {
  412: 'Somebody changed it since it was read; nothing was changed.',
  428: '`If-Match` is missing.',
};

type OpenApiDocument = ReturnType<OpenAPIHono['getOpenAPI31Document']>;

/** All routes of the API: those of RPCs, and those that gRPC has nothing like. */
export interface ApiRoutes {
  readonly rpc: readonly RpcRoute[];
  readonly others: readonly (ApiRoute & { readonly route: OwnRoute })[];
  readonly shapes: Shapes;
}

export function apiRoutes(): ApiRoutes {
  const { routes, shapes } = rpcRoutes(ANSWERED);
  return { rpc: routes, others: ownRoutes(shapes), shapes };
}

export function openApiDocument(): OpenApiDocument {
  const app = new OpenAPIHono();
  const registry = app.openAPIRegistry;
  const { rpc, others, shapes } = apiRoutes();
  registry.register('Problem', Problem);
  for (const [name, schema] of shapes.named) registry.register(name, schema);
  for (const [name, scheme] of SECURITY) registry.registerComponent('securitySchemes', name, scheme);
  for (const [name, header] of Object.entries(HEADERS)) registry.registerComponent('headers', name, header);
  for (const [status, description] of Object.entries({ ...PROBLEMS, ...OF_A_BODY, ...CONDITIONS }))
    registry.registerComponent('responses', nameOfProblem(status), {
      description,
      headers: headersOf(status),
      content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
    });
  for (const route of [...rpc, ...others]) registry.registerPath(pathOf(route));
  registry.register('DeniedWrite', DENIAL);
  for (const route of GATEWAY_PATHS) registry.registerPath(gatewayPathOf(route));
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Writ',
      version: VERSION,
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url: '/', description: 'The coordinator that serves this document.' }],
    tags: TAGS.map(([name, title, description]) => ({ name, description: `${title}. ${description}` })),
  });
  return withPlainReferences(document) as OpenApiDocument;
}

/** A description stands beside a reference (OpenAPI 3.1), rather than around it. */
function withPlainReferences(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(withPlainReferences);
  if (typeof part !== 'object' || part === null) return part;
  const { allOf, ...rest } = part as { readonly allOf?: readonly object[] };
  const plain = allOf === undefined ? part : Object.assign({}, ...allOf, rest);
  return Object.fromEntries(Object.entries(plain).map(([key, value]) => [key, withPlainReferences(value)]));
}

/** What `npm run gen` has made of it, as it is served: to make it takes as long as a thousand fence checks. */
const WRITTEN = new URL('../../../../docs/openapi.json', import.meta.url);

export const openApiText = (): string => readFileSync(WRITTEN, 'utf8');

const SECURITY = [
  [
    'token',
    { type: 'http', scheme: 'bearer', description: 'A token of the principals file, or of a configured issuer.' },
  ],
  [
    'certificate',
    { type: 'mutualTLS', description: 'A client certificate of an authority that the coordinator trusts.' },
  ],
] as const;

/** What each operation says of itself. */
function operationOf(route: MethodRoute, operationId: string, comment: string) {
  const [method = '', path = ''] = route.split(' ');
  return {
    method: method.toLowerCase() as 'get',
    path,
    operationId,
    tags: [TAG_OF[path.split('/')[2] ?? ''] ?? 'fence'],
    summary: comment.split(/(?<=[.:;]) /)[0]?.replace(/[.:;]$/, '') ?? '',
    description: comment,
    'x-writ-roles': (rolesForRoute(route) ?? []).join(', '),
    security: [{ token: [] }, { certificate: [] }],
  };
}

function pathOf(route: ApiRoute) {
  const isRead = route.route.startsWith('GET ');
  const parametersIn = (place: 'path' | 'query' | 'header'): z.ZodObject =>
    z.object(
      Object.fromEntries(
        route.parameters.filter((one) => one.place === place).map(({ name, schema }) => [name, schema]),
      ),
    );
  const isKnownByTag = route.answer.hasTag === true && isRead;
  const headers = parametersIn('header').extend({
    ...(route.needsVersion ? { 'If-Match': IF_MATCH } : {}),
    ...(isKnownByTag ? { 'If-None-Match': IF_NONE_MATCH } : {}),
  });
  return {
    ...operationOf(route.route, route.operationId, said(route.comment)),
    request: {
      params: parametersIn('path'),
      query: parametersIn('query'),
      headers,
      ...(route.body === null
        ? {}
        : { body: { required: true, content: { 'application/json': { schema: route.body } } } }),
    },
    responses: {
      200: {
        description: 'The answer.',
        content: { [route.answer.type]: { schema: route.answer.schema } },
        headers: headersOf(route.answer.hasTag === true ? 'ETag' : ''),
      },
      ...(isKnownByTag
        ? { 304: { description: 'It is what `If-None-Match` names.', headers: headersOf('ETag') } }
        : {}),
      ...problems({
        ...PROBLEMS,
        ...(route.body === null ? {} : OF_A_BODY),
        ...(route.needsVersion ? CONDITIONS : {}),
      }),
    },
  };
}

const IF_MATCH = z.string().openapi({
  description:
    'The version that the change is made against, as the ETag of GET has it; "0" before the first. Of several, one has to be the current one; a weak tag never is (RFC 9110, 13.1.1).',
  example: '"7"',
});

const IF_NONE_MATCH = z.string().optional().openapi({
  description: 'The ETag of what the caller has: it is not sent again while it is the same (304).',
  example: '"7"',
});

/** Of requests that are in forms of others. */
function gatewayPathOf({ route, operationId, comment, headers, body, answer, denials = {} }: GatewayPath) {
  const denied = Object.entries(denials).map(([status, description]) => [status, deniedBy(status, description)]);
  return {
    ...operationOf(route, operationId, comment),
    request: {
      ...(headers === undefined ? {} : { headers }),
      ...(body === undefined ? {} : { body: { required: true, content: { [body.type]: { schema: body.schema } } } }),
    },
    responses: {
      200: {
        description: answer.description,
        headers: { ...headersOf(''), ...answer.headers },
        content: { [answer.type]: { schema: answer.schema } },
      },
      ...problems({ ...PROBLEMS, ...(body === undefined ? {} : OF_A_BODY) }),
      ...Object.fromEntries(denied),
    },
  };
}

function deniedBy(status: string, description: string) {
  return {
    description,
    headers: { ...headersOf(status), ...DENIED },
    content: { 'application/problem+json': { schema: { anyOf: [DENIED_WRITE, A_PROBLEM] } } },
  };
}

const A_PROBLEM = { $ref: '#/components/schemas/Problem' };
const DENIED_WRITE = { $ref: '#/components/schemas/DeniedWrite' };

const HEADERS = {
  'X-Request-Id': header("The request's own, or one that was made for it: finds it in the log.", true),
  ETag: header('The version.', true),
  'WWW-Authenticate': header('What to present, and whether what was presented is not good.', true),
  'Retry-After': header('Seconds after which it is worth trying again.', true),
  Accept: header('Where the type is wrong: the one that is read.'),
  'Accept-Encoding': header('Where the body is compressed: how it is read.'),
  'Writ-Reason': header(
    'Of a denied write, as `code` of the problem; without it the answer is about the proxy itself.',
  ),
  'Writ-Problem': header('Of a denied write: the problem once more, for proxies that drop the body.'),
};

type HeaderName = keyof typeof HEADERS;

const BY_STATUS: Readonly<Record<string, readonly HeaderName[]>> = {
  ETag: ['ETag'],
  401: ['WWW-Authenticate'],
  415: ['Accept', 'Accept-Encoding'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

const references = (names: readonly HeaderName[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

/** Of an answer that has a tag, or of one with this status. */
const headersOf = (of: string) => references(['X-Request-Id', ...(BY_STATUS[of] ?? [])]);

const DENIED = references(['Writ-Reason', 'Writ-Problem']);

const nameOfProblem = (status: string): string => `Problem${status}`;

function problems(told: Readonly<Record<number, string>>) {
  const statuses = Object.keys(told);
  return Object.fromEntries(
    statuses.map((status) => [status, { $ref: `#/components/responses/${nameOfProblem(status)}` }]),
  );
}
