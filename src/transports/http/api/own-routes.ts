import { z } from '@hono/zod-openapi';
import { ROLES } from '../../../auth/principal.js';
import type { MethodRoute } from '../../../auth/roles.js';
import { messageNamed } from '../../../contract/descriptors.js';
import type { ApiRoute, Parameter } from './api-route.js';
import { type Shapes, text, truth, uint32, uint64 } from './shapes.js';

/** The routes that gRPC has nothing like: what they take, and what they answer. */

/** Messages of the contract that their answers consist of. */
export const ANSWERED = [
  'Lease',
  'Blocker',
  'Freeze',
  'MapProblem',
  'PutConflictMapResponse',
  'Event',
  'FenceUpdate',
].map((name) => messageNamed(`writ.v1.${name}`));

export type OwnRoute = Extract<
  MethodRoute,
  | 'GET /v1/principal'
  | 'GET /v1/waiters'
  | 'GET /v1/conflict-map/schema'
  | 'POST /v1/conflict-map/test'
  | 'POST /v1/conflict-map/diff'
  | 'POST /v1/conflict-map/rollback'
  | 'GET /v1/events/stream'
  | 'GET /v1/events/export'
  | 'GET /v1/fence/changes'
>;

const query = (
  name: string,
  schema: z.ZodType,
  description: string,
  form: Parameter['form'] = 'text',
  field = name,
): Parameter => ({
  name,
  place: 'query',
  field,
  schema: schema.optional().openapi({ description }),
  form,
  isList: false,
});

const NAMESPACE = query('namespace', text(), 'Empty or absent: "default".');
const PAGE = [
  query('page_size', uint32(), '1 to 1,000; absent or 0: 100.', 'number', 'page.page_size'),
  query('page_token', text(), '`nextPageToken` of the page before; absent: the first page.', 'text', 'page.page_token'),
];
const AFTER = query('after_revision', uint64(), 'Only what comes after this log revision.');
const LAST_EVENT_ID: Parameter = {
  name: 'Last-Event-ID',
  place: 'header',
  field: 'last_event_id',
  schema: text().optional().openapi({ description: 'Where to go on: the `id` of the last event that was read.' }),
  form: 'text',
  isList: false,
};

const DOCUMENT = text().openapi({ description: 'YAML or JSON, at most 1 MiB.' });
const version = (description: string) => uint64().openapi({ description });

export function ownRoutes(shapes: Shapes): readonly (ApiRoute & { readonly route: OwnRoute })[] {
  const answer = (name: string): z.ZodType => shapes.answer(messageNamed(`writ.v1.${name}`));
  const plain = { body: null, bodyMessage: null, needsVersion: false, scope: 'namespace' } as const;
  const json = (schema: z.ZodType) => ({ type: 'application/json', schema }) as const;
  const Waiter = z
    .object({
      lease: answer('Lease').openapi({ description: 'What it asks for.' }),
      place: z.int().openapi({ description: '1: the next.' }),
      waitsFor: z.array(answer('Blocker')).openapi({ description: 'Whom it waits for.' }),
      waitingSince: z.string().openapi({ format: 'date-time', description: 'When it was asked for.' }),
      waitsUntil: z.string().openapi({ format: 'date-time', description: 'When it gives up.' }),
      earliestAfter: z
        .string()
        .optional()
        .openapi({ description: 'Not before that much time; absent: nobody knows.', example: '12.500s' }),
      freezes: z.array(answer('Freeze')).openapi({ description: 'Freezes that it waits for.' }),
    })
    .openapi('Waiter', { description: 'A lease that waits.' });
  const onLiveConflict = shapes.member(
    messageNamed('writ.v1.PutConflictMapRequest').fields.find(({ name }) => name === 'on_live_conflict') as never,
  );
  return [
    {
      ...plain,
      route: 'GET /v1/principal',
      operationId: 'getPrincipal',
      comment: 'Says who calls, and what they may do in the namespace. Roles: all.',
      parameters: [NAMESPACE],
      scope: 'none',
      answer: json(
        z
          .object({
            name: z.string().openapi({ description: 'Of the principal.' }),
            roles: z.array(z.enum(ROLES as [string])).openapi({ description: 'That hold in the namespace.' }),
            namespaceRoles: z
              .record(z.string(), z.array(z.enum(ROLES as [string])))
              .openapi({ description: 'That hold besides in single namespaces, by their names.' }),
            may: z
              .array(z.string())
              .openapi({ description: 'Methods that may be called in the namespace, such as `RunService/StopRun`.' }),
          })
          .openapi('Principal', { description: 'Who calls.' }),
      ),
    },
    {
      ...plain,
      route: 'GET /v1/waiters',
      operationId: 'listWaiters',
      comment:
        'Leases that wait, the longest first, with whom they wait for. A page may be shorter than it was asked for. Runners see those of their own runs. Roles: runner, operator, admin, auditor.',
      parameters: [
        NAMESPACE,
        query('run_id', text(), 'Only of this run.'),
        query('resource', text(), 'Only those that ask for this resource, or something above or below it.'),
        ...PAGE,
      ],
      answer: json(
        z
          .object({
            waiters: z.array(Waiter),
            nextPageToken: z.string().openapi({ description: 'Empty: this is the last page.' }),
            logRevision: uint64().openapi({ description: 'Log revision at which this was true.' }),
          })
          .openapi('ListWaitersResponse', { description: 'Leases that wait.' }),
      ),
    },
    {
      ...plain,
      route: 'GET /v1/conflict-map/schema',
      operationId: 'getConflictMapSchema',
      comment: 'The form of a conflict map, as a JSON schema for editors. Roles: all.',
      parameters: [],
      scope: 'none',
      answer: { type: 'application/schema+json', schema: z.record(z.string(), z.unknown()) },
    },
    {
      ...plain,
      route: 'POST /v1/conflict-map/test',
      operationId: 'testConflictMap',
      comment: 'Runs the assertions of a document; stores nothing. Roles: admin, operator, auditor.',
      parameters: [],
      scope: 'none',
      body: z
        .strictObject({ document: DOCUMENT })
        .openapi('TestConflictMapRequest', { description: 'A document to test.' }),
      answer: json(
        z
          .object({
            passed: z.boolean().openapi({ description: 'Every assertion holds, and nothing else is wrong.' }),
            assertions: z.int().openapi({ description: 'How many assertions were run.' }),
            failed: z.array(answer('MapProblem')).openapi({ description: 'Assertions that do not hold.' }),
            problems: z
              .array(answer('MapProblem'))
              .openapi({ description: 'Errors with which no assertion means anything; without any, warnings.' }),
          })
          .openapi('TestConflictMapResponse', { description: 'What the assertions came to.' }),
      ),
    },
    {
      ...plain,
      route: 'POST /v1/conflict-map/diff',
      operationId: 'diffConflictMap',
      comment: 'Compares a version of the map with another one, or with a document. Roles: admin, operator, auditor.',
      parameters: [NAMESPACE],
      hasDocument: true,
      body: z
        .strictObject({
          fromVersion: version('Absent or zero: the current version.').optional(),
          toVersion: version('What to compare with. Not together with document.').optional(),
          document: DOCUMENT.optional().openapi({ description: 'What to compare with. Not together with toVersion.' }),
        })
        .openapi('DiffConflictMapRequest', { description: 'What to compare.' }),
      answer: json(
        z
          .object({
            fromVersion: version('The version compared.'),
            toVersion: version('The version that it was compared with. Absent: with a document.').optional(),
            differs: z.boolean().openapi({ description: 'Whether there is any difference.' }),
            diff: z.string().openapi({ description: 'A unified diff; empty: they are equal.' }),
          })
          .openapi('DiffConflictMapResponse', { description: 'How they differ.' }),
      ),
    },
    {
      ...plain,
      route: 'POST /v1/conflict-map/rollback',
      operationId: 'rollbackConflictMap',
      comment: 'Puts an older version of the map again, as a new one. Role: admin.',
      parameters: [NAMESPACE],
      needsVersion: true,
      body: z
        .strictObject({
          toVersion: version('The version to go back to. Required.'),
          reason: text().optional().openapi({ description: 'Why; absent: that it is a rollback, and to what.' }),
          onLiveConflict,
        })
        .openapi('RollbackConflictMapRequest', { description: 'Which version to put again.' }),
      answer: { ...json(answer('PutConflictMapResponse')), hasTag: true },
    },
    {
      ...plain,
      route: 'GET /v1/events/stream',
      operationId: 'streamEvents',
      comment:
        'The log as it grows, as server-sent events. Each has an Event as `data` and its place, revision and hash, as `id`; it begins at the head, or after the place in `Last-Event-ID` or the revision in `after_revision`. An event `problem` says why the stream ends; open another one, with the last `id`. Roles: auditor, operator, admin.',
      parameters: [NAMESPACE, AFTER, LAST_EVENT_ID],
      answer: { type: 'text/event-stream', schema: z.string() },
    },
    {
      ...plain,
      route: 'GET /v1/events/export',
      operationId: 'exportEvents',
      comment:
        'The log as a file, in the form that `writ audit verify` takes offline: a header with a signed checkpoint, then the events up to it, one a line. A connection that breaks off before its end means half a file. Roles: auditor, admin.',
      parameters: [NAMESPACE, AFTER],
      answer: { type: 'application/x-ndjson', schema: z.string() },
    },
    {
      ...plain,
      route: 'GET /v1/fence/changes',
      operationId: 'watchFences',
      comment:
        'Changes of fences, as server-sent events: what WatchFences tells, each a FenceUpdate as `data`. Those up to which all has been told have an `id`, by which `Last-Event-ID` goes on. A `mark` comes every second: everything has been told that the log had at its `databaseTime`. A reader knows by it how old what it was told is, as far as its clock agrees with that of the database; targets that decide by a view use gRPC, whose marks answer pings of their own. Role: target.',
      parameters: [
        NAMESPACE,
        query('view_kinds_only', truth(), 'Only of kinds that are decided by a view.', 'truth'),
        LAST_EVENT_ID,
      ],
      answer: { type: 'text/event-stream', schema: z.string() },
    },
  ];
}
