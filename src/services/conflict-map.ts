import {
  type ConflictMapDocument,
  compileStored,
  describeResource,
  kindOf,
  type ResourceDescription,
} from '../domain/conflict-map/index.js';
import { decidePutMap, type PutMapCommand, previewPutMap } from '../domain/decide/put-map.js';
import { Reexpansion } from '../domain/decide/reexpansion.js';
import type { WriteSetRequest } from '../domain/entry.js';
import { Fault, invalidArgument } from '../domain/fault.js';
import type { MapVersion, UnmatchedResource } from '../storage/store.js';
import type {
  AffectedLease,
  At,
  CallContext,
  Explanation,
  LocatedProblem,
  OnLiveConflict,
  Page,
  Paged,
  TaskPair,
} from './api.js';
import { type Deps, engineOf, hasRole, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';
import type { MapSource } from './map-jobs.js';
import { MAX_TEXT_BYTES } from './map-source.js';
import { numberIn, pagesOf } from './pages.js';
import { reexpandAhead } from './reexpand-ahead.js';

const versionPages = pagesOf('map-versions');
const unmatchedPages = pagesOf('unmatched');

/** GetConflictMap: the current version, or an older one; version 0 is the empty map before the first put. */
export async function getConflictMap(
  deps: Deps,
  context: CallContext,
  input: { version: number },
): Promise<At<MapVersion | null>> {
  const engine = await engineOf(deps, context);
  const { value: current, revision, now } = await engine.read(({ state }) => state.mapVersion);
  const wanted = input.version === 0 ? current : input.version;
  if (wanted === 0) return { value: null, revision, now };
  const found = await engine.store.readMapVersion(engine.namespace, wanted);
  if (found === null) {
    throw new Fault(
      'not_found',
      'MAP_VERSION_NOT_FOUND',
      `The conflict map has no version ${wanted}; the current one is ${current}.`,
      {
        metadata: { current_version: String(current) },
      },
    );
  }
  return { value: found, revision, now };
}

interface PutInput {
  readonly document: string;
  readonly expectedVersion: number;
  readonly reason: string;
  readonly onLiveConflict: OnLiveConflict;
}

/** PutConflictMap: against the version it was read at; live leases are expanded anew in the same commit. */
export async function putConflictMap(
  deps: Deps,
  context: CallContext,
  input: PutInput,
): Promise<At<{ version: number; warnings: readonly LocatedProblem[]; affected: readonly AffectedLease[] }>> {
  const checks = new FieldChecks();
  checks.text('reason', input.reason, 1_024);
  checkDocument(checks, input.document);
  checks.done();
  return deps.workshop.admit(context.principal.name, async () => {
    const { document, problems } = await deps.workshop.check(input.document);
    if (document === null) throw invalidMap(problems);
    const command = await commandFor(deps, context, input, document);
    const engine = await engineOf(deps, context);
    try {
      const answer = await engine.submit(context.principal.name, (decision) => decidePutMap(decision, command), true);
      return { ...answer, value: { ...answer.value, warnings: problems } };
    } catch (error) {
      const done = await alreadyPut(deps, context, input, error);
      if (done === null) throw error;
      return {
        value: { version: done.version, warnings: problems, affected: [] },
        revision: done.revision,
        now: done.now,
      };
    }
  });
}

/** The command of a put or a preview, with what live leases come to by it worked out as far as they are known now. */
async function commandFor(
  deps: Deps,
  context: CallContext,
  input: Omit<PutInput, 'expectedVersion' | 'reason'> & Partial<PutInput>,
  document: ConflictMapDocument,
): Promise<PutMapCommand> {
  const engine = await engineOf(deps, context);
  const reexpansion = new Reexpansion(compileStored(document));
  await reexpandAhead(engine.state, reexpansion, deps.bounds);
  return {
    text: input.document,
    document,
    reexpansion,
    expectedVersion: input.expectedVersion ?? 0,
    reason: input.reason ?? '',
    onLiveConflict: input.onLiveConflict,
    requestIds: requestIds(context.requestId),
  };
}

/** A repeated put whose answer was lost: the next version is already there, with this text, by this author. */
async function alreadyPut(
  deps: Deps,
  context: CallContext,
  input: PutInput,
  error: unknown,
): Promise<{ version: number; revision: number; now: number } | null> {
  if (!(error instanceof Fault) || error.reason !== 'MAP_VERSION_CONFLICT') return null;
  const version = input.expectedVersion + 1;
  const engine = await engineOf(deps, context);
  const put = await engine.store.readMapVersion(engine.namespace, version);
  if (
    put === null ||
    put.text !== input.document ||
    put.author !== context.principal.name ||
    put.reason !== input.reason
  )
    return null;
  const { revision, now } = await engine.read(() => null);
  return { version, revision, now };
}

/** ValidateConflictMap: everything that is wrong or doubtful, with line and column; stores nothing. */
export async function validateConflictMap(
  deps: Deps,
  context: CallContext,
  input: { document: string; fileName: string },
): Promise<{ valid: boolean; problems: readonly LocatedProblem[] }> {
  const checks = new FieldChecks();
  checkDocument(checks, input.document);
  checks.text('file_name', input.fileName, 256);
  checks.done();
  return deps.workshop.admit(context.principal.name, async () => {
    const { document, problems } = await deps.workshop.check(input.document, input.fileName);
    return { valid: document !== null, problems };
  });
}

/** PreviewConflictMap: the same decision as a put, on an overlay that is thrown away. */
export async function previewConflictMap(
  deps: Deps,
  context: CallContext,
  input: { document: string; onLiveConflict: OnLiveConflict },
): Promise<At<{ accepted: boolean; problems: readonly LocatedProblem[]; affected: readonly AffectedLease[] }>> {
  const checks = new FieldChecks();
  checkDocument(checks, input.document);
  checks.done();
  return deps.workshop.admit(context.principal.name, async () => {
    const engine = await engineOf(deps, context);
    const { document, problems } = await deps.workshop.check(input.document);
    if (document === null) return engine.read(() => ({ accepted: false, problems, affected: [] }));
    const command = await commandFor(deps, context, input, document);
    return engine.read((view) => {
      const decision = view.preview(context.principal.name, deps.bounds);
      return { problems, ...previewPutMap(decision, command) };
    });
  });
}

/** The map of a document given with a question, or the current one. */
async function sourceFor(deps: Deps, context: CallContext, document: string): Promise<MapSource> {
  const engine = await engineOf(deps, context);
  if (document === '') return deps.workshop.taken((await engine.read(({ state }) => state.map)).value);
  const checks = new FieldChecks();
  checkDocument(checks, document);
  checks.done();
  return { text: document, fileName: '' };
}

/** ExplainConflict: whether two write sets conflict, every step by rule. */
export async function explainConflict(
  deps: Deps,
  context: CallContext,
  input: { a: WriteSetRequest; b: WriteSetRequest; document: string },
): Promise<Explanation> {
  const checks = new FieldChecks();
  checks.writeSet('a.', input.a, deps.bounds.maxEntries);
  checks.writeSet('b.', input.b, deps.bounds.maxEntries);
  checks.done();
  // Compiling a document is costly: only those who edit maps may bring one.
  if (input.document !== '' && !hasRole(context, 'admin', 'operator', 'auditor')) {
    throw new Fault(
      'permission_denied',
      'ROLE_REQUIRED',
      'A document to explain by needs the role admin, operator or auditor.',
    );
  }
  return deps.workshop.admit(context.principal.name, async () => {
    const source = await sourceFor(deps, context, input.document);
    const { explanation, problems } = await deps.workshop.explain(source, input.a, input.b);
    if (explanation === null) throw invalidMap(problems);
    return explanation;
  });
}

/** GetTaskMatrix: which pairs of tasks can collide, and why (C3a). */
export async function getTaskMatrix(
  deps: Deps,
  context: CallContext,
  input: { document: string },
): Promise<readonly TaskPair[]> {
  return deps.workshop.admit(context.principal.name, async () => {
    const { matrix, problems } = await deps.workshop.matrix(await sourceFor(deps, context, input.document));
    if (matrix === null) throw invalidMap(problems);
    return matrix;
  });
}

/** ListConflictMapVersions: newest first. */
export async function listConflictMapVersions(
  deps: Deps,
  context: CallContext,
  input: { page: Page },
): Promise<Paged<MapVersion>> {
  const { size, after } = versionPages.asked(input.page);
  const engine = await engineOf(deps, context);
  await engine.read(() => null);
  const rows = await engine.store.listMapVersions(engine.namespace, numberIn(after), size + 1);
  return versionPages.cut(rows, size, (version) => String(version.version));
}

/** ResolveResource: an alias turned into its path, and the kind it is of. */
export async function resolveResource(
  deps: Deps,
  context: CallContext,
  input: { resource: string },
): Promise<ResourceDescription> {
  const checks = new FieldChecks();
  if (input.resource === '') checks.reject('resource', 'is required');
  else checks.text('resource', input.resource, 2_048);
  checks.done();
  const engine = await engineOf(deps, context);
  const { value } = await engine.read(({ state }) => describeResource(state.map, input.resource));
  if (!value.ok) throw invalidArgument([{ field: 'resource', description: value.reason }]);
  return value.description;
}

/** ListUnmatchedResources: what was asked for or checked and no kind matches now (C14). */
export async function listUnmatchedResources(
  deps: Deps,
  context: CallContext,
  input: { page: Page },
): Promise<Paged<UnmatchedResource>> {
  const { size, after } = unmatchedPages.asked(input.page);
  const engine = await engineOf(deps, context);
  const { value: rows } = await engine.read(({ state }) =>
    [...state.unmatched.values()]
      .filter((seen) => seen.resource > after && kindOf(state.map, seen.resource) === null)
      .sort((a, b) => (a.resource < b.resource ? -1 : 1)),
  );
  return unmatchedPages.cut(rows, size, (seen) => seen.resource);
}

export function checkDocument(checks: FieldChecks, document: string): void {
  if (document === '') checks.reject('document', 'is required');
  else if (Buffer.byteLength(document) > MAX_TEXT_BYTES) checks.reject('document', 'must be at most 1 MiB');
}

function invalidMap(problems: readonly LocatedProblem[]): Fault {
  return invalidArgument(
    problems
      .filter((problem) => !problem.warning)
      .slice(0, 100)
      .map(({ path, line, column, code, message }) => ({
        field: path === '' ? 'document' : `document.${path}`,
        description: `${line > 0 ? `line ${line}, column ${column}: ` : ''}${message} (${code})`,
      })),
  );
}
