import type { z } from 'zod';
import { changeRule } from './change-class.js';
import { PathIndex } from './path-index.js';
import { pathOf, RouteTableError, type RouteTableProblem } from './problems.js';
import { MAX_PATH_SEGMENTS } from './request-path.js';
import { type RouteDocument, routeTableSchema, type WriteDocument } from './schema.js';
import { lengthFlaw } from './segment.js';
import { ANY_HOST, type FieldCapture, type Route, type RouteTable, type RouteWrite } from './table.js';
import { parseTemplate, type Step } from './template.js';

/**
 * Reads a route table: which request makes which writes, and of which class (W4). One format for the target kit and for
 * gateways. Throws a RouteTableError that names everything that is wrong, each with its path.
 *
 * @example
 * const table = parseRouteTable({
 *   version: 1,
 *   routes: [
 *     {
 *       method: 'POST',
 *       path: '/releases/{env}/promote',
 *       writes: [{ resource: 'release/{env}', action: 'promote', change_class: 'shared_pointer' }],
 *     },
 *     { method: ['GET', 'HEAD'], path: '/releases/{env...}', reads: true },
 *   ],
 * });
 */
export function parseRouteTable(document: unknown): RouteTable {
  const read = routeTableSchema.safeParse(document, { error: messageOf, reportInput: true });
  if (!read.success) throw new RouteTableError(read.error.issues.flatMap(problemsOf));
  const problems: RouteTableProblem[] = [];
  const routes = read.data.routes.map((route, index) => compile(route, index, problems));
  const byHost = indexed(
    routes.filter((route) => route !== null),
    problems,
  );
  if (problems.length > 0) throw new RouteTableError(problems);
  return { routes: routes.filter((route) => route !== null), unrouted: read.data.unrouted ?? 'deny', byHost };
}

/** Null when its path is wrong: it takes no part in what is compared between routes. */
function compile(document: RouteDocument, index: number, problems: RouteTableProblem[]): Route | null {
  const problem = (message: string, ...steps: PropertyKey[]) =>
    problems.push({ path: pathOf(['routes', index, ...steps]), message });
  const steps = pathSteps(document.path, (message) => problem(message, 'path'));
  const methods = typeof document.method === 'string' ? [document.method] : document.method;
  if (new Set(methods).size < methods.length) problem('names a method twice', 'method');
  const { writes, reads, unprotected, when_unreachable } = document;
  if ([writes, reads, unprotected].filter((given) => given !== undefined).length !== 1)
    problem('give exactly one of writes, reads and unprotected');
  if (writes === undefined && when_unreachable !== undefined)
    problem('says what happens to writes, and the route has none', 'when_unreachable');
  if (unprotected?.trim() === '') problem('give the reason why no check is made', 'unprotected');
  const fields = fieldCaptures(document.fields ?? {}, steps ?? [], (message, name) => problem(message, 'fields', name));
  if (fields.length > 0 && writes === undefined)
    problem('are for the resources of writes, and the route has none', 'fields');
  const captures = steps === null ? null : [...steps, ...fields];
  const compiled = compileWrites(writes ?? [], captures, (message, ...at) => problem(message, 'writes', ...at));
  if (steps === null) return null;
  const basics = { index, host: document.host ?? null, methods, path: document.path, steps, fields };
  if (writes !== undefined)
    return { ...basics, kind: 'writes', writes: compiled, whenUnreachable: when_unreachable ?? 'deny' };
  return unprotected === undefined
    ? { ...basics, kind: 'reads' }
    : { ...basics, kind: 'unprotected', reason: unprotected };
}

function compileWrites(
  writes: readonly WriteDocument[],
  captures: readonly Capture[] | null,
  problem: (message: string, ...at: PropertyKey[]) => void,
): readonly RouteWrite[] {
  return writes.map(({ resource, action, change_class: changeClass, resolver }, at) => {
    const steps = resourceSteps(resource, captures, (message) => problem(message, at, 'resource'));
    if (writes.findIndex((other) => other.resource === resource && other.action === action) < at)
      problem(`${action} of ${resource} is there twice`, at);
    return { resource, steps, action, changeClass, resolver: resolver ?? changeRule(changeClass).resolver };
  });
}

/** The steps of a route's path; null when it is wrong. */
function pathSteps(path: string, problem: (message: string) => void): readonly Step[] | null {
  if (path === '/') return [];
  const wrong = (message: string) => {
    problem(message);
    return null;
  };
  if (!path.startsWith('/')) return wrong('must begin with "/"');
  const parts = path.slice(1).split('/');
  if (parts.length > MAX_PATH_SEGMENTS) return wrong(`has more than ${MAX_PATH_SEGMENTS} segments`);
  // A literal is compared with a decoded segment: an escape in it would never match.
  const escaped = parts.find((part) => /[%?#\\]/.test(part));
  if (escaped !== undefined)
    return wrong(`${JSON.stringify(escaped)}: write the characters themselves, no escapes and no query`);
  const parsed = parseTemplate(path.slice(1));
  if (!parsed.ok) return wrong(`${parsed.reason}; a path has literal segments, {name}, and a final {name...}`);
  const names = parsed.steps.flatMap((step) => (step.kind === 'literal' ? [] : [step.name]));
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) return wrong(`{${twice}} is there twice; each capture needs a name of its own`);
  return parsed.steps;
}

/** Captures from fields of the request; none may have the name of one in the path. */
function fieldCaptures(
  fields: Readonly<Record<string, string>>,
  path: readonly Step[],
  problem: (message: string, name: string) => void,
): readonly FieldCapture[] {
  const taken = new Set(path.flatMap((step) => (step.kind === 'literal' ? [] : [step.name])));
  return Object.entries(fields).map(([written, field]) => {
    const rest = written.endsWith('...');
    const name = rest ? written.slice(0, -3) : written;
    if (taken.has(name)) problem('is captured already; each capture needs a name of its own', written);
    taken.add(name);
    return { name, kind: rest ? 'rest' : 'capture', field };
  });
}

/** What a template may name. */
type Capture = Step | FieldCapture;

/** The steps of a resource, whose captures must be those of the route, each of its kind. */
function resourceSteps(
  text: string,
  captures: readonly Capture[] | null,
  problem: (message: string) => void,
): readonly Step[] {
  const parsed = parseTemplate(text);
  if (!parsed.ok) {
    problem(`${parsed.reason}; a resource is a path such as release/{env}`);
    return [];
  }
  const shortest = lengthFlaw(parsed.steps.map((step) => (step.kind === 'literal' ? step.text : 'x')));
  if (shortest !== null) problem(shortest);
  for (const step of captures === null ? [] : parsed.steps) {
    if (step.kind === 'literal') continue;
    const captured = captures?.find((other) => other.kind !== 'literal' && other.name === step.name);
    if (captured === undefined) problem(`the route captures no {${step.name}}`);
    else if (captured.kind !== step.kind) {
      const written = captured.kind === 'rest' ? `{${step.name}...}` : `{${step.name}}`;
      problem(`the route captures ${written}; write it so here too`);
    }
  }
  return parsed.steps;
}

/** Two routes that are equally specific for one request are a problem: neither order nor luck decides. */
function indexed(routes: readonly Route[], problems: RouteTableProblem[]): RouteTable['byHost'] {
  const byHost = new Map<string, Map<string, PathIndex<Route>>>();
  for (const route of routes) {
    const host = route.host ?? ANY_HOST;
    const byMethod = byHost.get(host) ?? new Map<string, PathIndex<Route>>();
    byHost.set(host, byMethod);
    for (const method of new Set(route.methods)) {
      const index = byMethod.get(method) ?? new PathIndex<Route>();
      byMethod.set(method, index);
      const other = index.add(route);
      if (other === null) continue;
      const where = route.host === null ? '' : ` at ${route.host}`;
      problems.push({
        path: pathOf(['routes', route.index, 'path']),
        message: `${method} ${route.path}${where} is as specific as routes[${other.index}] (${other.path}): neither would win`,
      });
    }
  }
  return byHost;
}

function problemsOf(issue: z.core.$ZodIssue): RouteTableProblem[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ path: pathOf([...issue.path, key]), message: 'is no key that is known here' }));
  // A method is a text or a list: whoever gave a list is told about its items.
  if (issue.code === 'invalid_union') {
    const branch = issue.errors[Array.isArray(issue.input) ? 1 : 0] ?? [];
    return branch.flatMap((inner) => problemsOf({ ...inner, path: [...issue.path, ...inner.path] }));
  }
  return [{ path: pathOf(issue.path), message: issue.message }];
}

type RawIssue = Parameters<z.core.$ZodErrorMap>[0];

function messageOf(issue: RawIssue): string | undefined {
  const missing = issue.input === undefined;
  if (issue.code === 'invalid_type') return missing ? 'is missing' : `must be ${article(issue.expected)}`;
  if (issue.code !== 'invalid_value') return undefined;
  const values = issue.values.map(String).join(', ');
  return missing ? `is missing: one of ${values}` : `must be ${issue.values.length > 1 ? 'one of ' : ''}${values}`;
}

function article(expected: string): string {
  return expected === 'array' ? 'a list' : expected === 'object' ? 'an object' : `a ${expected}`;
}
