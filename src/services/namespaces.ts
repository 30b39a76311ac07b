import { visibleNamespaces } from '../auth/principal.js';
import { Fault, invalidArgument } from '../domain/fault.js';
import { hasEnded } from '../domain/run.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import type { CallContext, NamespaceView, Page, Paged } from './api.js';
import type { Deps } from './deps.js';
import { namespaceOf } from './fields.js';
import { pagesOf } from './pages.js';

const pages = pagesOf('namespaces');

async function describe(deps: Deps, engine: NamespaceEngine): Promise<NamespaceView> {
  const first = await engine.store.readEvent(engine.namespace, 1);
  const { value } = await engine.read(({ state }) => ({
    name: state.namespace,
    database: deps.installation.databaseOf(state.namespace),
    createdAt: first?.time ?? null,
    revision: state.revision,
    mapVersion: state.mapVersion,
    liveLeases: state.activeLeases,
    waitingRequests: state.waitingLeases,
    liveRuns: [...state.runs.values()].filter((run) => !hasEnded(run)).length,
  }));
  return value;
}

/** CreateNamespace: an existing one is returned, unless another database was named for it. */
export async function createNamespace(
  deps: Deps,
  context: CallContext,
  input: { name: string; database?: string | null },
): Promise<{ namespace: NamespaceView; created: boolean }> {
  if (input.name === '') throw invalidArgument([{ field: 'name', description: 'is required' }]);
  const name = namespaceOf(input.name, 'name');
  const created = await deps.installation.create(name, context.principal.name, input.database ?? null);
  return { namespace: await describe(deps, await deps.installation.open(name)), created };
}

export async function getNamespace(deps: Deps, _context: CallContext, input: { name: string }): Promise<NamespaceView> {
  return describe(deps, await deps.installation.open(namespaceOf(input.name, 'name')));
}

/** ListNamespaces: all of them, or those in which the caller has a role. */
export async function listNamespaces(
  deps: Deps,
  context: CallContext,
  input: { page: Page },
): Promise<Paged<NamespaceView>> {
  const { size, after } = pages.asked(input.page);
  const visible = visibleNamespaces(context.principal);
  const names =
    visible === null
      ? await deps.installation.listNamespaces(after, size + 1)
      : visible.filter((name) => name > after).slice(0, size + 1);
  const { items, nextToken } = pages.cut(names, size, (name) => name);
  const views: NamespaceView[] = [];
  for (const name of items) {
    const engine = await deps.installation.open(name).catch(noneYet);
    if (engine !== null) views.push(await describe(deps, engine));
  }
  return { items: views, nextToken };
}

/** Roles can be given in a namespace before it is made. */
function noneYet(error: unknown): null {
  if (error instanceof Fault && error.reason === 'NAMESPACE_NOT_FOUND') return null;
  throw error;
}
