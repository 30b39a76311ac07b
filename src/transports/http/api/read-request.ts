import type { DescField, DescOneof, JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Context } from 'hono';
import type { z } from 'zod';
import type { Violation } from '../../../domain/fault.js';
import type { MessageBounds } from '../../message-size.js';
import { demandType, JSON_TYPE } from '../media-type.js';
import { allValues } from '../raw-headers.js';
import type { RouteContext } from '../route.js';
import type { ApiRoute, Parameter } from './api-route.js';
import { inUsualForm } from './json-forms.js';
import type { RpcParameter } from './routes.js';
import { pathOf, readStrictJson, told } from './strict-json.js';
import { WrongRequest } from './wrong-request.js';

/** What a request says, as the RPC's request in proto3 JSON. Whatever is wrong is told at once, by the name the caller used. */

/** More than this in one answer helps nobody. */
const MAX_VIOLATIONS = 50;

/** Values of the path, the query and the headers; throws a Fault. */
export function readParameters<P extends Parameter>(
  c: RouteContext,
  { parameters, route }: { readonly parameters: readonly P[]; readonly route: string },
): ReadonlyMap<P, JsonValue> {
  const violations: Violation[] = [];
  const { pathname, search, searchParams: query } = new URL(c.req.url);
  const known = new Set(parameters.filter(({ place }) => place === 'query').map(({ name }) => name));
  for (const name of new Set(query.keys()))
    if (!known.has(name)) violations.push({ field: told(name), description: unknownParameter(known, route) });
  for (const name of illEscaped({ pathname, search, route }))
    violations.push({ field: told(name), description: ILL_ESCAPED });
  const values = new Map<P, JsonValue>();
  for (const parameter of parameters) {
    const given = givenFor(c, query, parameter);
    const { name, schema, isList } = parameter;
    if (given.length > 1 && !isList) violations.push({ field: name, description: 'is given more than once' });
    const value = jsonGiven(parameter, given);
    violations.push(...violationsOf(schema, value, [name]));
    if (value !== undefined) values.set(parameter, value);
  }
  refuse(violations);
  return values;
}

const ILL_ESCAPED = 'is not UTF-8 in percent encoding';

/** What a reader of URLs would repair on its own: half an escape stays as it is, and bytes that are no UTF-8 become U+FFFD. */
function illEscaped({
  pathname,
  search,
  route,
}: {
  readonly pathname: string;
  readonly search: string;
  readonly route: string;
}): string[] {
  const [, path = ''] = route.split(' ');
  const segments = pathname.split('/');
  const inPath = path.split('/').map((name, index) => [name.replace(/[{}]/g, ''), segments[index] ?? ''] as const);
  const inQuery = search
    .slice(1)
    .split('&')
    .map((pair) => [pair.split('=')[0] ?? '', pair] as const);
  return [...inPath, ...inQuery].filter(([, text]) => !isWellEscaped(text)).map(([name]) => name);
}

function isWellEscaped(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function unknownParameter(known: ReadonlySet<string>, route: string): string {
  return known.size === 0
    ? `is not known here: ${route} takes no parameters`
    : `is not known here; ${route} takes ${[...known].join(', ')}`;
}

function givenFor(c: RouteContext, query: URLSearchParams, { name, place }: Parameter): string[] {
  if (place === 'query') return query.getAll(name);
  // Two keys are not one with a comma in it: whichever hop repeats a header, or no more, would make another request of it.
  if (place === 'header') return allValues(c.env.incoming.rawHeaders).get(name.toLowerCase()) ?? [];
  const value = c.req.param(name);
  return value === undefined ? [] : [value];
}

function jsonGiven(parameter: Parameter, given: readonly string[]): JsonValue | undefined {
  if (parameter.isList) return given.length === 0 ? undefined : given.map((text) => jsonOf(parameter, text));
  return given[0] === undefined ? undefined : jsonOf(parameter, given[0]);
}

/** As JSON has it; what is of another form stays text, and is refused as such. */
function jsonOf({ form }: Parameter, text: string): JsonValue {
  if (form === 'truth') return text === 'true' ? true : text === 'false' ? false : text;
  return form === 'number' && /^-?\d{1,10}$/.test(text) ? Number(text) : text;
}

/** The body; an absent one is one that says nothing. Throws a Fault, or what demandType does. */
export async function readBody(
  c: Context,
  route: ApiRoute,
  limits: { readonly maxBytes: number; readonly bounds: MessageBounds },
): Promise<JsonObject> {
  if (route.body === null) return {};
  const bytes = await readBytes(c, limits.maxBytes);
  if (bytes.length === 0) return checked(route.body, {}, route);
  demandType(c, JSON_TYPE);
  return checked(route.body, readStrictJson(textOf(bytes), limits.bounds), route);
}

function checked(schema: z.ZodType, given: unknown, { parameters, needsVersion, bodyMessage }: ApiRoute): JsonObject {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new WrongRequest([{ field: 'body', description: 'must be a JSON object' }]);
  const value = bodyMessage === null ? (given as JsonObject) : inUsualForm(bodyMessage, given as JsonObject);
  const elsewhere = new Map(parameters.map((one) => [inJson(one.field), one]));
  const violations = violationsOf(schema, value, []).map((violation) => {
    const parameter = elsewhere.get(violation.field);
    if (parameter !== undefined) return { ...violation, description: placedIn(parameter) };
    if (needsVersion && violation.field === 'expectedVersion')
      return { ...violation, description: 'is given by the header If-Match' };
    return violation;
  });
  refuse(violations);
  return value;
}

function placedIn({ place, name }: Parameter): string {
  const where = place === 'path' ? 'in the path' : `by the ${place === 'query' ? 'parameter' : 'header'} ${name}`;
  return `is given ${where}`;
}

/** At most so many bytes, also of a body that does not say how many it has. */
async function readBytes(c: Context, maxBytes: number): Promise<Buffer> {
  if (Number(c.req.header('content-length') ?? 0) > maxBytes) throw new BodyTooLarge(maxBytes);
  const { body } = c.req.raw;
  if (body === null) return Buffer.alloc(0);
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body) {
    bytes += part.byteLength;
    if (bytes > maxBytes) throw new BodyTooLarge(maxBytes);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function textOf(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new WrongRequest([{ field: 'body', description: 'is not valid UTF-8' }]);
  }
}

/** Thrown while a body is read. */
export class BodyTooLarge extends Error {
  constructor(readonly maxBytes: number) {
    super(`a request body may have at most ${maxBytes} bytes here`);
  }
}

/** The RPC's request of what was read. */
export function toMessage(
  body: JsonObject,
  values: ReadonlyMap<RpcParameter, JsonValue>,
  more: readonly (readonly [DescField, JsonValue])[],
): JsonObject {
  refuseTogether(values);
  const message = structuredClone(body);
  for (const [{ fields }, value] of values) put(message, fields, value);
  for (const [field, value] of more) put(message, [field], value);
  return message;
}

/** Of some parameters the contract takes one only. */
function refuseTogether(values: ReadonlyMap<RpcParameter, JsonValue>): void {
  const chosen = new Map<DescOneof, string>();
  for (const { name, fields } of values.keys()) {
    const oneof = fields.at(-1)?.oneof;
    if (oneof === undefined) continue;
    const other = chosen.get(oneof);
    if (other !== undefined) refuse([{ field: name, description: `cannot be given together with ${other}` }]);
    chosen.set(oneof, name);
  }
}

function put(message: JsonObject, fields: readonly DescField[], value: JsonValue): void {
  const [field, ...rest] = fields as [DescField, ...DescField[]];
  if (rest.length === 0) {
    message[field.jsonName] = value;
    return;
  }
  const inner = (message[field.jsonName] ?? {}) as JsonObject;
  message[field.jsonName] = inner;
  put(inner, rest, value);
}

function refuse(violations: readonly Violation[]): void {
  if (violations.length > 0) throw new WrongRequest(violations.slice(0, MAX_VIOLATIONS));
}

function violationsOf(schema: z.ZodType, value: unknown, at: readonly PropertyKey[]): Violation[] {
  const result = schema.safeParse(value, { error: messageOf });
  if (result.success) return [];
  return result.error.issues.slice(0, MAX_VIOLATIONS).flatMap((issue) => {
    const path = [...at, ...issue.path];
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({ field: pathOf([...path, key]), description: 'is not known here' }));
    return [{ field: pathOf(path) || 'body', description: issue.message }];
  });
}

function messageOf({ input, code }: { readonly input?: unknown; readonly code: string }): string | undefined {
  if (input === undefined) return 'is required';
  return code === 'invalid_type' ? 'must be an object' : undefined;
}

/** What a service says is wrong, by the names that the caller used. */
export function inCallersWords(violations: readonly Violation[], { parameters, needsVersion }: ApiRoute): Violation[] {
  const names = new Map(parameters.map(({ field, name }) => [field, name]));
  if (needsVersion) names.set('expected_version', 'If-Match');
  return violations.map(({ field, description }) => ({ field: names.get(field) ?? inJson(field), description }));
}

/** Within a conflict map, names are the map's own. */
function inJson(field: string): string {
  return field.startsWith('document.')
    ? field
    : field.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
