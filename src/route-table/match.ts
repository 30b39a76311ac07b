import type { ChangeClass } from '../domain/change-class.js';
import { capturesOf, EXACT, type Reading } from './path-index.js';
import { readPath } from './request-path.js';
import { HOST } from './schema.js';
import { lengthFlaw, segmentFlaw } from './segment.js';
import {
  ANY_HOST,
  type FieldCapture,
  type ReadRoute,
  type Route,
  type RouteTable,
  type UnprotectedRoute,
  type WriteRoute,
} from './table.js';
import { fill } from './template.js';

/** What a request is matched by. */
export interface RoutedRequest {
  /** As in the Host header, a port allowed. Looked at only by tables that name hosts. */
  readonly host?: string | undefined;
  readonly method: string;
  /** As it was sent, still escaped; a query is allowed and not looked at. */
  readonly path: string;
  /** Reads a field of the request message, for routes whose resources are named there; undefined: it has no such value. */
  readonly field?: ((path: string) => string | undefined) | undefined;
}

/** One write that a request would make. */
export interface MatchedWrite {
  readonly resource: string;
  readonly action: string;
  readonly changeClass: ChangeClass;
  readonly resolver: string;
}

/** What a route table says of a request. Only `writes` need a fence check; `unrouted` and `malformed` are refused. */
export type RouteMatch =
  | { readonly kind: 'writes'; readonly route: WriteRoute; readonly writes: readonly MatchedWrite[] }
  /** `route` is null for a safe method that no route names, under `unrouted: allow_reads`. */
  | { readonly kind: 'reads'; readonly route: ReadRoute | null }
  | { readonly kind: 'unprotected'; readonly route: UnprotectedRoute }
  | { readonly kind: 'unrouted'; readonly message: string }
  | { readonly kind: 'malformed'; readonly message: string };

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** The route of a request, whatever it names its resources by; null under `unrouted: allow_reads`. */
export type FoundRoute =
  | { readonly kind: 'route'; readonly route: Route | null; readonly segments: readonly string[] }
  | Extract<RouteMatch, { kind: 'unrouted' | 'malformed' }>;

/** Which route a request takes. The most specific wins: one for this host before one for any, then a literal before a capture, left to right. */
export function findRoute(table: RouteTable, { host, method, path }: RoutedRequest): FoundRoute {
  const read = readPath(path);
  if (!read.ok) return { kind: 'malformed', message: read.message };
  const hosts = hostsToTry(table, host ?? '');
  if (hosts === null)
    return { kind: 'malformed', message: 'The host is no host name in normal form, and routes here depend on it.' };
  const { segments, escaped } = read;
  const taken = (by: string, reading: Reading): Route | null => {
    for (const key of hosts) {
      const route = table.byHost.get(key)?.get(by)?.find(segments, reading) ?? null;
      if (route !== null) return route;
    }
    return null;
  };
  const route = taken(method, EXACT);
  if (route === null && (table.unrouted === 'deny' || !SAFE_METHODS.has(method))) return unrouted(method);
  // The service may route by letter case, or by what was sent, and the table must not let in what that is not.
  const readings = otherReadings(escaped);
  if (readings.some((reading) => ![null, route].includes(taken(method, reading))))
    return { kind: 'malformed', message: 'The path has escapes or letter cases by which it could be of two routes.' };
  // Servers answer HEAD by what they have for GET, unless it is declared for itself.
  const writesByHead = (got: Route | null) => got?.kind === 'writes' && got.path !== route?.path;
  if (method === 'HEAD' && [EXACT, ...readings].some((reading) => writesByHead(taken('GET', reading))))
    return unrouted(method);
  return { kind: 'route', route, segments };
}

const unrouted = (method: string): FoundRoute => ({
  kind: 'unrouted',
  message: `No route is declared for ${method.slice(0, 32)} on this path.`,
});

/** How routers read a path that the table reads letter by letter, unescaped. */
function otherReadings(escaped: ReadonlySet<number>): readonly Reading[] {
  const unescaped = { caseless: true, unlike: EXACT.unlike };
  if (escaped.size === 0) return [unescaped];
  return [unescaped, { caseless: false, unlike: escaped }, { caseless: true, unlike: escaped }];
}

/**
 * Which writes a request would make. A path that is not in normal form is `malformed`, never repaired; what is
 * `malformed` or `unrouted` is to be refused.
 *
 * @example
 * const match = matchRoute(table, { method: 'POST', path: '/releases/prod-eu/promote' });
 * if (match.kind === 'writes') console.log(match.writes[0]?.resource); // release/prod-eu
 */
export function matchRoute(table: RouteTable, request: RoutedRequest): RouteMatch {
  const found = findRoute(table, request);
  if (found.kind !== 'route') return found;
  return found.route === null ? { kind: 'reads', route: null } : matched(found.route, found.segments, request.field);
}

/** Where to look, the more specific first; null: the host cannot be told. */
function hostsToTry(table: RouteTable, host: string): readonly string[] | null {
  // Without routes of one host its name makes no difference.
  if (table.byHost.size === 1 && table.byHost.has(ANY_HOST)) return [ANY_HOST];
  const name = host.toLowerCase().replace(/:\d{1,5}$/, '');
  return name.length <= 255 && HOST.test(name) ? [name, ANY_HOST] : null;
}

function matched(route: Route, segments: readonly string[], field: RoutedRequest['field']): RouteMatch {
  if (route.kind === 'reads') return { kind: 'reads', route };
  if (route.kind === 'unprotected') return { kind: 'unprotected', route };
  const captures = capturesOf(route.steps, segments);
  for (const capture of route.fields) {
    const value = readField(capture, field);
    if (typeof value === 'string') return { kind: 'malformed', message: value };
    captures.set(capture.name, value);
  }
  const writes: MatchedWrite[] = [];
  for (const { steps, action, changeClass, resolver } of route.writes) {
    const resource = fill(steps, captures);
    const flaw = lengthFlaw(resource);
    if (flaw !== null) return { kind: 'malformed', message: `The resource that the path names ${flaw}.` };
    writes.push({ resource: resource.join('/'), action, changeClass, resolver });
  }
  return { kind: 'writes', route, writes };
}

/** The segments that a field names, or what is wrong with it. */
function readField({ field, kind }: FieldCapture, read: RoutedRequest['field']): readonly string[] | string {
  if (read === undefined) return `The resources of this route are named by the request's field ${field}, unseen here.`;
  const value = read(field);
  if (value === undefined) return `The request's field ${field} is missing, or is no text or number.`;
  const segments = kind === 'rest' ? value.split('/') : [value];
  const flaw = segments.map(segmentFlaw).find((one) => one !== null);
  return flaw === undefined ? segments : `The request's field ${field} has a segment that ${flaw}.`;
}
