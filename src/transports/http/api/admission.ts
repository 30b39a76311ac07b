import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Principal } from '../../../auth/principal.js';
import { authorize, type Method, methodOfRoute } from '../../../auth/roles.js';
import { Fault } from '../../../domain/fault.js';
import type { Limits } from '../../../platform/config.js';
import { readEntityTags } from '../../../route-table/index.js';
import type { WritApi } from '../../../services/api.js';
import { boundsOf, maxBytesOf } from '../../message-size.js';
import { orDefault } from '../../namespace-of.js';
import { faultProblem, problem } from '../problem.js';
import type { RouteContext } from '../route.js';
import type { ApiRoute, Parameter } from './api-route.js';
import { BodyTooLarge, inCallersWords, readBody, readParameters } from './read-request.js';
import { WrongRequest } from './wrong-request.js';

/** What every route of the API has in common: how a request is let in and read, and how it is told what is wrong. */

export interface Serving {
  /** Throws a Fault `unavailable` before the coordinator has started. */
  readonly api: () => WritApi;
  readonly limits: Limits;
}

/** A request, read. */
export interface Admitted<P extends Parameter> {
  readonly values: ReadonlyMap<P, JsonValue>;
  readonly body: JsonObject;
  /** As the caller named it; empty: the default one, or none. */
  readonly namespace: string;
  /** With the roles that hold there. */
  readonly principal: Principal;
  /** What `If-Match` names; null: the route has no use for it. */
  readonly version: string | null;
}

/** Reads a request whose caller may call the route somewhere. Throws what is wrong with it. */
export async function admit<P extends Parameter>(
  c: RouteContext,
  route: ApiRoute & { readonly parameters: readonly P[] },
  caller: Principal,
  { api, limits }: Serving,
): Promise<Admitted<P>> {
  const method = methodOfRoute(route.route) as Method;
  const namespace = takesNamespace(route) ? (c.req.query('namespace') ?? '') : '';
  // Who may not is told that alone, and nobody reads megabytes for them.
  const principal = route.scope === 'namespace' ? authorize(caller, method, orDefault(namespace)) : caller;
  const values = readParameters(c, route);
  const current = async (): Promise<string> => {
    const context = { principal, namespace, requestId: '', deadlineMs: null, signal: c.req.raw.signal };
    return String((await api().getConflictMap(context, { version: 0 })).value?.version ?? 0);
  };
  const version = route.needsVersion ? await versionIn(c, current) : null;
  const maxBytes = route.hasDocument === true ? limits.maxMessageBytes : maxBytesOf(method, limits);
  const body = await readBody(c, route, { maxBytes, bounds: boundsOf(limits) });
  return { values, body, namespace, principal, version };
}

const takesNamespace = ({ parameters }: ApiRoute): boolean =>
  parameters.some(({ name, place }) => name === 'namespace' && place === 'query');

/** The version that a change is made against (RFC 9110, 13.1.1); whether it still is the current one, is for who changes it. */
async function versionIn(c: RouteContext, current: () => Promise<string>): Promise<string> {
  // A condition that nobody looks at is not one: `*` says that there must be no map yet, and would pass beside any version.
  if (c.req.header('if-none-match') !== undefined)
    throw new WrongRequest([
      {
        field: 'If-None-Match',
        description:
          'is not taken here; say by If-Match alone which version the change is made against, "0" before the first',
      },
    ]);
  const ifMatch = c.req.header('if-match');
  if (ifMatch === undefined) throw new VersionMissing(await current());
  const tags = readEntityTags(ifMatch);
  if (typeof tags === 'string') {
    const description = `${ifMatch.trim() === '*' ? 'names no version' : tags}; send an ETag as GET gives it, such as "7", or "0" before the first version`;
    throw new WrongRequest([{ field: 'If-Match', description }]);
  }
  const versions = tags.filter(({ weak, value }) => !weak && VERSION.test(value)).map(({ value }) => value);
  if (versions.length === 1) return versions[0] as string;
  const now = await current();
  if (versions.includes(now)) return now;
  // One that is not current is not refused unasked: it may be the change that was made already, repeated (P6).
  const last = versions.toSorted((a, b) => Number(a) - Number(b)).at(-1);
  if (last === undefined) throw new NoVersionMatches(now);
  return last;
}

const VERSION = /^\d{1,16}$/;

/** A change that does not say what it is made against (RFC 6585). */
class VersionMissing extends Error {
  constructor(readonly current: string) {
    super(`say by If-Match which version the change is made against; the current one is "${current}"`);
  }
}

/** What `If-Match` names can be no version of the map. */
class NoVersionMatches extends Error {
  constructor(readonly current: string) {
    super(
      `no tag in If-Match can match: one is a version such as "7", and a weak one (W/"7") never does; the current version is "${current}": read it, and decide anew`,
    );
  }
}

/** What a request came to that was not answered; null: nothing that its caller may know. */
export function problemOf(c: RouteContext, route: ApiRoute, error: unknown): Response | null {
  if (error instanceof BodyTooLarge) return problem(c, 413, 'BODY_TOO_LARGE', error.message);
  if (error instanceof VersionMissing) {
    c.header('etag', `"${error.current}"`);
    return problem(c, 428, 'PRECONDITION_REQUIRED', error.message, { currentVersion: error.current });
  }
  if (error instanceof NoVersionMatches) return conflict(c, error.message, error.current);
  if (!(error instanceof Fault)) return faultProblem(c, error);
  const { metadata, violations } = error.details;
  if (error.reason === 'MAP_VERSION_CONFLICT' && route.needsVersion)
    return conflict(c, error.message, metadata?.current_version ?? '');
  const facts = metadata === undefined ? {} : { metadata };
  if (violations === undefined || error instanceof WrongRequest) return faultProblem(c, error, facts);
  const told = inCallersWords(violations, route);
  const detail = told.map(({ field, description }) => `${field}: ${description}`).join('; ');
  return faultProblem(c, error, { detail, violations: told, ...facts });
}

/** Somebody changed it since it was read (RFC 9110). */
function conflict(c: RouteContext, message: string, currentVersion: string): Response {
  c.header('etag', `"${currentVersion}"`);
  return problem(c, 412, 'MAP_VERSION_CONFLICT', message, { currentVersion });
}
