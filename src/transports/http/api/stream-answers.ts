import type { Principal } from '../../../auth/principal.js';
import { authorize, type Method } from '../../../auth/roles.js';
import { Fault, invalidArgument } from '../../../domain/fault.js';
import { FenceUpdate } from '../../../gen/writ/v1/fence_service.js';
import { inPortions } from '../../../platform/portions.js';
import type { EventPlace } from '../../../services/api.js';
import type { FenceUpdate as Update, WatchFencesInput } from '../../../services/fence-watches.js';
import { exportText } from '../../../services/log-export.js';
import { toUpdate } from '../../messages/fence-updates.js';
import { eventJson } from '../../methods/audit-methods.js';
import { orDefault } from '../../namespace-of.js';
import { problemText } from '../problem.js';
import type { RouteContext } from '../route.js';
import { type Asked, countOf, textOf } from './asked.js';
import { json } from './own-answers.js';
import type { StreamSource, Streams } from './streams.js';

/** Answers that go on for as long as somebody listens, and the export of a log. */

export interface StreamServing {
  readonly streams: Streams;
  /** Finds out again who calls: a stream outlives a token that was revoked. Rejects with a Fault. */
  readonly identify: (c: RouteContext) => Promise<Principal>;
  /** Told of what failed in the coordinator once an answer was on its way. */
  readonly trouble: (route: string, error: unknown) => void;
}

/** Between two tries of a browser, in milliseconds. */
const RETRY_MS = 2_000;
/** Between two marks of fence changes, which tell how old what was told is: `max_view_age` is 1 s at least. */
const MARK_EVERY_MS = 1_000;
/** A comment, by which proxies and readers see that the connection lives. */
const ALIVE = ': alive\n\n';

/** An `id` alone is no event, and is where a reader goes on that hears nothing more. */
const opening = (id: string): string => `retry: ${RETRY_MS}\n${id === '' ? '' : `id: ${id}\n`}\n`;
const told = (id: string, data: unknown): string =>
  `${id === '' ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
const farewell = (fault: Fault): string => `event: problem\ndata: ${problemText(fault)}\n\n`;

/** What a watch tells, a portion at a time. */
function sourceOf<T>(watch: Watch<T>, first: string, textOf: (item: T) => string): StreamSource {
  async function* parts(): AsyncGenerator<string> {
    yield first;
    for (;;) {
      const items = await watch.next();
      // A turn without news says that the connection lives.
      if (items.length === 0) yield ALIVE;
      for await (const { text } of inPortions(items, textOf)) yield text;
    }
  }
  const all = parts();
  return { next: async () => (await all.next()).value, close: () => watch.close() };
}

interface Watch<T> {
  next(): Promise<readonly T[]>;
  close(): void;
}

/** GET /v1/events/stream. */
export async function eventStream(asked: Asked, serving: StreamServing): Promise<Response> {
  const { api, context, values } = asked;
  const lastId = textOf(values.get('Last-Event-ID'));
  const after = values.get('after_revision');
  const given = after === undefined ? null : { revision: countOf(after, 'after_revision'), hash: null };
  const watch = await api.watchEvents(context, { after: lastId === '' ? given : eventPlaceIn(lastId) });
  const source = sourceOf(watch, opening(placeId(watch.position)), (event) => told(placeId(event), eventJson(event)));
  return serve(asked, serving, 'AuditService/ListEvents', source);
}

/** With the hash of the event there: a reader of a history that was lost is told so, wherever its new one has got to. */
const placeId = ({ revision, hash }: EventPlace): string => (hash === null ? `${revision}` : `${revision}:${hash}`);

function eventPlaceIn(lastId: string): EventPlace {
  const [, revision, hash = null] = /^(\d{1,16})(?::([0-9a-f]{64}))?$/.exec(lastId) ?? [];
  if (revision === undefined)
    throw badLastId('the `id` of an event, a log revision and its hash, or the revision alone');
  return { revision: countOf(revision, 'Last-Event-ID'), hash };
}

/** GET /v1/fence/changes. */
export async function fenceChanges(asked: Asked, serving: StreamServing): Promise<Response> {
  const { api, context, values } = asked;
  const viewKindsOnly = values.get('view_kinds_only') === true;
  const from = positionIn(textOf(values.get('Last-Event-ID')));
  const watch = await api.watchFences(context, { from, viewKindsOnly });
  // The reader cannot ping, so that it is done for it. Of pings that are not answered yet only the last one is.
  let pings = 0;
  const ping = (): void => watch.ping(++pings);
  ping();
  const pinging = setInterval(ping, MARK_EVERY_MS).unref();
  const source = sourceOf(watch, opening(''), (update) => told(idOf(update), json(FenceUpdate, toUpdate(update))));
  const close = (): void => {
    clearInterval(pinging);
    source.close();
  };
  return serve(asked, serving, 'FenceService/WatchFences', { ...source, close });
}

/** Where everything up to there has been told. */
function idOf(update: Update): string {
  if (update.kind !== 'reached' && update.kind !== 'mark') return '';
  return `${update.position.revision}:${update.position.hash}`;
}

function positionIn(lastId: string): WatchFencesInput['from'] {
  if (lastId === '') return null;
  const [, revision, hash] = /^([1-9]\d{0,15}):([0-9a-f]{64})$/.exec(lastId) ?? [];
  if (revision === undefined || hash === undefined) throw badLastId('the `id` of an update, a log revision and a hash');
  return { revision: countOf(revision, 'Last-Event-ID'), hash };
}

function badLastId(what: string): Fault {
  return invalidArgument([{ field: 'Last-Event-ID', description: `must be ${what}` }]);
}

function serve(
  { c, caller, context }: Asked,
  { streams, identify, trouble }: StreamServing,
  method: Method,
  source: StreamSource,
): Response {
  return streams.serve(c, {
    type: 'text/event-stream',
    source,
    idle: ALIVE,
    farewell,
    trouble,
    look: async () => stillMay(caller, await identify(c), method, context.namespace),
  });
}

function stillMay(before: Principal, now: Principal, method: Method, namespace: string): void {
  authorize(now, method, orDefault(namespace));
  if (now.name === before.name) return;
  throw new Fault(
    'unauthenticated',
    'PRINCIPAL_CHANGED',
    'what the stream was opened with stands for another principal now; open another one',
  );
}

/** GET /v1/events/export. */
export async function eventExport(asked: Asked, { streams, identify, trouble }: StreamServing): Promise<Response> {
  const { c, api, caller, context, values } = asked;
  const after = countOf(values.get('after_revision'), 'after_revision');
  const checkpoint = await api.getCheckpoint(context, { at: 'head' });
  const { namespace, revision } = checkpoint;
  if (after > revision)
    throw invalidArgument([{ field: 'after_revision', description: `the log ends at revision ${revision}` }]);
  const parts = exportText(checkpoint, after, () => api.exportEvents(context, { afterRevision: after }));
  // What is wrong with the place is told before anything else is.
  let first: IteratorResult<{ readonly text: string }> | null = await parts.next();
  c.header('content-disposition', `attachment; filename="${namespace}-${after + 1}-${revision}.ndjson"`);
  return streams.serve(c, {
    type: 'application/x-ndjson',
    source: {
      async next() {
        const part = first ?? (await parts.next());
        first = null;
        return part.done === true ? null : part.value.text;
      },
      close: () => void parts.return(undefined).catch(() => undefined),
    },
    idle: null,
    farewell: null,
    trouble,
    look: async () => stillMay(caller, await identify(c), 'AuditService/ExportEvents', context.namespace),
  });
}
