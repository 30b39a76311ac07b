import { invalidArgument } from '../domain/fault.js';
import type { Micros } from '../domain/time.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import { toFault } from '../engine/trouble.js';
import type { EventRecord, SignedCheckpoint } from '../storage/store.js';
import type { CallContext, Checkpoint, CheckpointPlace, EventPlace, EventQuery, FoundIds, Page, Paged } from './api.js';
import { type Deps, engineOf } from './deps.js';
import { FieldChecks } from './fields.js';
import { firstOf, logIsShorter, placeAt, wasCut } from './log-places.js';
import { badPageToken, fitting, numberIn, pagesOf } from './pages.js';

const eventPages = pagesOf('events');
const checkpointPages = pagesOf('checkpoints');

const EXPORT_BATCH = 1_000;
const EVENT_OVERHEAD = 512;

/** ListEvents: a search of the log; the page token is the event it goes on after. */
export async function listEvents(
  deps: Deps,
  context: CallContext,
  query: EventQuery & { page: Page },
): Promise<Paged<EventRecord> & { readonly firstRevision: number }> {
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
  const { size, after } = eventPages.asked(query.page);
  const engine = await engineOf(deps, context);
  const { revision: head } = await engine.read(() => null);
  const place = after === '' ? null : placeIn(after);
  // A search does not go on in another history, nor beyond a gap, nor waits for a shorter log to catch up (F13).
  const from = place === null ? null : (await placeAt(engine, head, place)).revision;
  if (query.afterRevision > head) throw logIsShorter(query.afterRevision, head);
  const firstRevision = await firstOf(engine);
  const { runId, leaseId, resource, kinds, requestId, newestFirst } = query;
  // What a cut gave up is not shown while it is being removed.
  const floor = Math.max(query.afterRevision, firstRevision - 1);
  const afterRevision = from !== null && !newestFirst ? Math.max(from, floor) : floor;
  const rows = await engine.store.listEvents(engine.namespace, {
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
  return { ...eventPages.cut(rows, Math.min(size, fit), ({ revision, hash }) => `${revision}:${hash}`), firstRevision };
}

const MAX_FOUND = 10;

/** FindIds: whole ids from the beginning of one, as screens shorten them. */
export async function findIds(
  deps: Deps,
  context: CallContext,
  { beginning }: { beginning: string },
): Promise<FoundIds> {
  if (!/^[0-9a-f]{4,32}$/.test(beginning))
    throw invalidArgument([{ field: 'beginning', description: 'must be 4 to 32 of 0-9 and a-f' }]);
  const engine = await engineOf(deps, context);
  await engine.read(() => null);
  const found = await engine.store.findIds(engine.namespace, beginning, MAX_FOUND + 1);
  const more = found.runIds.length > MAX_FOUND || found.leaseIds.length > MAX_FOUND;
  return { runIds: found.runIds.slice(0, MAX_FOUND), leaseIds: found.leaseIds.slice(0, MAX_FOUND), more };
}

function placeIn(after: string): EventPlace {
  const [, revision, hash] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/.exec(after) ?? [];
  if (revision === undefined || hash === undefined) throw badPageToken();
  return { revision: Number(revision), hash };
}

/** ExportEvents: the log in order, up to the head it had when the call began; a log that was cut begins at the cut. */
export async function* exportEvents(
  deps: Deps,
  context: CallContext,
  input: { afterRevision: number },
): AsyncIterable<readonly EventRecord[]> {
  const engine = await engineOf(deps, context);
  const { revision: head } = await engine.read(() => null);
  const first = await firstOf(engine).catch((error) => {
    throw toFault(error);
  });
  if (input.afterRevision > 0 && input.afterRevision < first - 1) throw wasCut(first);
  let after = Math.max(input.afterRevision, first - 1);
  while (after < head && !context.signal.aborted) {
    const page = engine.store.readTail(engine.namespace, after, Math.min(EXPORT_BATCH, head - after));
    const events = await page.catch((error) => {
      throw toFault(error);
    });
    const last = events[events.length - 1];
    if (last === undefined) return;
    // Cut meanwhile: an export has no gaps.
    if (events[0]?.revision !== after + 1) throw wasCut(await firstOf(engine));
    yield events;
    after = last.revision;
  }
}

/** GetCheckpoint: a signed statement over the head as the database confirms it now, or over an event before it (A2). */
export async function getCheckpoint(
  deps: Deps,
  context: CallContext,
  { at }: { at: CheckpointPlace } = { at: 'head' },
): Promise<Checkpoint> {
  const engine = await engineOf(deps, context);
  const { value: head, now } = await engine.read(() => engine.head);
  if (at === 'head') return deps.signer.sign(engine.namespace, head.revision, head.hash, now);
  const event = await eventAt(engine, head.revision, at);
  return deps.signer.sign(engine.namespace, event.revision, event.hash, now);
}

/** ListCheckpoints: those that replicas signed on schedule, newest first (A2). */
export async function listCheckpoints(
  deps: Deps,
  context: CallContext,
  input: { page: Page },
): Promise<Paged<SignedCheckpoint>> {
  const { size, after } = checkpointPages.asked(input.page);
  const engine = await engineOf(deps, context);
  const rows = await engine.store.listCheckpoints(engine.namespace, numberIn(after), size + 1);
  return checkpointPages.cut(rows, size, ({ number }) => String(number));
}

async function eventAt(
  engine: NamespaceEngine,
  head: number,
  place: Exclude<CheckpointPlace, 'head'>,
): Promise<EventRecord> {
  if ('revision' in place && place.revision === 0)
    throw invalidArgument([{ field: 'revision', description: 'must be 1 or more' }]);
  const first = await firstOf(engine);
  const revision = 'revision' in place ? place.revision : await lastBefore(engine, first, head, place.before);
  if ('before' in place && revision < first)
    throw invalidArgument([
      { field: 'before', description: `the log has no event before it; it begins at revision ${first}` },
    ]);
  if (revision < first) throw wasCut(first);
  const event = revision > head ? null : await engine.store.readEvent(engine.namespace, revision);
  if (event !== null) return event;
  const firstNow = await firstOf(engine);
  if (revision < firstNow) throw wasCut(firstNow);
  throw invalidArgument([{ field: 'revision', description: `the log ends at revision ${head}` }]);
}

/** The last event before a time, by halves: revisions and times rise together. Below `first`: there is none. */
async function lastBefore(engine: NamespaceEngine, first: number, head: number, before: Micros): Promise<number> {
  let low = first - 1;
  let high = head + 1;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    const event = await engine.store.readEvent(engine.namespace, middle);
    if (event === null || event.time < before) low = middle;
    else high = middle;
  }
  return low;
}
