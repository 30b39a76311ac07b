import { toFault } from '../engine/trouble.js';
import type { EventRecord } from '../storage/store.js';
import type { CallContext, Checkpoint, EventQuery, Page, Paged } from './api.js';
import { type Deps, engineOf } from './deps.js';
import { FieldChecks, fitting, numberToken, paged, pageOf } from './fields.js';

const EXPORT_BATCH = 1_000;
const EVENT_OVERHEAD = 512;

/** ListEvents: a search of the log; the page token is the revision it goes on after. */
export async function listEvents(
  deps: Deps,
  context: CallContext,
  query: EventQuery & { page: Page },
): Promise<Paged<EventRecord>> {
  const checks = new FieldChecks();
  for (const [field, value] of [
    ['run_id', query.runId],
    ['lease_id', query.leaseId],
    ['request_id', query.requestId],
  ] as const) {
    checks.printable(field, value, false);
  }
  checks.text('resource', query.resource, 2_048);
  query.kinds.forEach((kind, index) => checks.printable(`kinds[${index}]`, kind, true));
  checks.done();
  const { size, after } = pageOf(query.page);
  const engine = await engineOf(deps, context);
  await engine.read(() => null);
  const from = numberToken(after);
  const { runId, leaseId, resource, kinds, requestId, newestFirst } = query;
  const afterRevision = from !== null && !newestFirst ? Math.max(from, query.afterRevision) : query.afterRevision;
  const rows = await deps.store.listEvents(engine.namespace, {
    ...(runId === '' ? {} : { runId }),
    ...(leaseId === '' ? {} : { leaseId }),
    ...(resource === '' ? {} : { resource }),
    ...(kinds.length === 0 ? {} : { kinds }),
    ...(requestId === '' ? {} : { requestId }),
    ...(from !== null && newestFirst ? { beforeRevision: from } : {}),
    afterRevision,
    newestFirst,
    limit: size + 1,
  });
  const fit = fitting(rows, (event) => Buffer.byteLength(event.body) + EVENT_OVERHEAD);
  return paged(rows, Math.min(size, fit), (event) => String(event.revision));
}

/** ExportEvents: the log in order, up to the head it had when the call began. */
export async function* exportEvents(
  deps: Deps,
  context: CallContext,
  input: { afterRevision: number },
): AsyncIterable<readonly EventRecord[]> {
  const engine = await engineOf(deps, context);
  const { revision: head } = await engine.read(() => null);
  let after = input.afterRevision;
  while (after < head && !context.signal.aborted) {
    const page = deps.store.readTail(engine.namespace, after, Math.min(EXPORT_BATCH, head - after));
    const events = await page.catch((error) => {
      throw toFault(error);
    });
    const last = events[events.length - 1];
    if (last === undefined) return;
    yield events;
    after = last.revision;
  }
}

/** GetCheckpoint: a signed statement over the head as the database confirms it now (A2). */
export async function getCheckpoint(deps: Deps, context: CallContext): Promise<Checkpoint> {
  const engine = await engineOf(deps, context);
  const { value: head, now } = await engine.read(() => engine.head);
  return deps.signer.sign(engine.namespace, head.revision, head.hash, now);
}
