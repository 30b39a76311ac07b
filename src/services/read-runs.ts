import { runNotFound } from '../domain/decide/run-guard.js';
import { ENDED_RUN_STATES, hasEnded, type RunState } from '../domain/run.js';
import type { At, CallContext, Page, Paged, RunView } from './api.js';
import { type Deps, engineOf, hasRole } from './deps.js';
import { FieldChecks } from './fields.js';
import { pagesOf } from './pages.js';
import { runView } from './run-view.js';

const pages = pagesOf('runs');

function seesAllRuns(context: CallContext): boolean {
  return hasRole(context, 'operator', 'admin', 'approver', 'auditor');
}

/** GetRun: a runner sees its own; an unknown and a foreign one look the same. */
export async function getRun(deps: Deps, context: CallContext, input: { runId: string }): Promise<At<RunView>> {
  const checks = new FieldChecks();
  checks.printable('run_id', input.runId, true);
  checks.done();
  const engine = await engineOf(deps, context);
  return engine.read((view) => {
    const run = view.run(input.runId);
    if (run === undefined || (!seesAllRuns(context) && run.principal !== context.principal.name))
      throw runNotFound(input.runId);
    return runView(view, run);
  });
}

/** ListRuns: live ones from memory at a confirmed head; with ended ones, from the projections. */
export async function listRuns(
  deps: Deps,
  context: CallContext,
  input: { states: readonly RunState[]; page: Page },
): Promise<At<Paged<RunView>>> {
  const { size, after } = pages.asked(input.page);
  const engine = await engineOf(deps, context);
  const principal = seesAllRuns(context) ? null : context.principal.name;
  if (input.states.some((state) => ENDED_RUN_STATES.has(state))) {
    const { revision, now } = await engine.read(() => null);
    const rows = await engine.store.listRuns(engine.namespace, {
      ...(principal === null ? {} : { principal }),
      states: input.states,
      afterId: after,
      limit: size + 1,
    });
    const views = await engine.read((view) => rows.map((run) => runView(view, run)));
    return { value: pages.cut(views.value, size, (view) => view.run.runId), revision, now };
  }
  return engine.read((view) => {
    const rows = [...view.state.runs.values()]
      .filter((run) => run.runId > after && (principal === null || run.principal === principal))
      .filter((run) => (input.states.length === 0 ? !hasEnded(run) : input.states.includes(run.state)))
      .sort((a, b) => (a.runId < b.runId ? -1 : 1))
      .slice(0, size + 1)
      .map((run) => runView(view, run));
    return pages.cut(rows, size, (row) => row.run.runId);
  });
}
