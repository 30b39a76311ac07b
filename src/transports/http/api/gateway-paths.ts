import { z } from '@hono/zod-openapi';
import type { MethodRoute } from '../../../auth/roles.js';

/** What gateways and verifiers ask in forms that others have made: read elsewhere, and described here for the document. */
export interface GatewayPath {
  readonly route: MethodRoute;
  readonly operationId: string;
  readonly comment: string;
  readonly headers?: z.ZodObject;
  readonly body?: { readonly type: string; readonly schema: z.ZodType };
  readonly answer: {
    readonly description: string;
    readonly type: string;
    readonly schema: z.ZodType;
    readonly headers?: Readonly<Record<string, AnsweredHeader>>;
  };
  /** Statuses by which a write is denied: with a problem of a form of its own. */
  readonly denials?: Readonly<Record<number, string>>;
}

/** A header of an answer, as the document has it. */
export const header = (description: string, required = false) =>
  ({ description, required, schema: { type: 'string' } }) as const;
type AnsweredHeader = ReturnType<typeof header>;

const says = (description: string) => z.string().openapi({ description });
const may = (description: string) => says(description).optional();

export const DENIAL = z
  .object({
    type: says('`urn:writ:problem:` and the code.'),
    title: says('The code in words.'),
    status: z.int().openapi({ description: 'The status.' }),
    detail: says('What happened.'),
    code: says('Stable: a reason of the fence check, or of the route table, in lower case.'),
    retryable: z.boolean().openapi({ description: 'Whether the caller may go on by itself.' }),
    next: says('What to do.'),
    request_id: says('Finds the denial in the log.'),
    resource: may('Of the first write that is denied.'),
    action: may('Of the same write.'),
    conflict_category: may('Its change class.'),
    resolver: may('Who decides.'),
    retry_after: z.int().optional().openapi({ description: 'Seconds.' }),
    refused: z
      .array(z.looseObject({}))
      .optional()
      .openapi({ description: 'All that are denied, where they are several.' }),
  })
  .openapi('DeniedWrite', { description: 'Why a proxy must not let a request pass (RFC 9457).' });

const ORIGINAL = z.object({
  'X-Original-Method': may('Of the request that is asked about; or X-Forwarded-Method.'),
  'X-Original-Host': may('Its host; or X-Forwarded-Host.'),
  'X-Original-URI': may('Its path as it was sent, still escaped; or X-Forwarded-Uri.'),
  'Writ-Authorization': may('Its `Authorization`.'),
  'Writ-Lease': may('As in the request.'),
  'Writ-Fencing-Token': may('As in the request.'),
  'If-Match': may('As in the request.'),
  'If-None-Match': may('As in the request.'),
  'Writ-Attempt-Id': may("The proxy's own id of the request, by which a check that it repeats is known."),
  'Writ-Presenter-Certificate': may('The client certificate of the run, PEM in URL encoding.'),
});

const LET_IN = {
  'Writ-Reason': header('`ok`; `reads` or `unprotected` where no check is needed.', true),
  'Writ-Observed-Only': header('`true`: the kind is only observed, and Writ-Reason is what would have been answered.'),
  'Writ-Run-Id': header('The run whose lease allows it; empty where there is none.', true),
  'Writ-Admission-Id': header('Of tracked writes, with commas between them; empty where there are none.', true),
  'Writ-Valid-For': header('What is left of the lease, such as `41250ms`.'),
  'Writ-Log-Revision': header('Where in the log it was decided.'),
};

const object = (members: Record<string, z.ZodType>, description: string) =>
  z.looseObject(members).openapi({ description });

const SUBJECT = object(
  {
    type: says('`run`.'),
    id: says('The run as the caller authenticated it.'),
    properties: z
      .looseObject({
        credential: may('What the run presents; or lease_id and fencing_token.'),
        lease_id: may('The lease.'),
        fencing_token: may('Its token, a decimal number.'),
        cnf: z
          .looseObject({})
          .optional()
          .openapi({ description: 'The key that the subject proved to have: `x5t#S256` or `jkt`.' }),
      })
      .optional(),
  },
  'Who wants to write.',
);

const RESOURCE = object(
  {
    type: says('`resource`.'),
    id: says('Its path.'),
    properties: z.looseObject({ observed_version: may('The version that the write was made from.') }).optional(),
  },
  'What is to be written.',
);

const ACTION = object({ name: says('As the conflict map has it.') }, 'What is to be done to it.');

const CONTEXT = object(
  { namespace: may('Absent: "default".'), request_id: may('By which the check is found in the log.') },
  'Around the question.',
);

const EVALUATION = z
  .looseObject({ subject: SUBJECT, resource: RESOURCE, action: ACTION, context: CONTEXT.optional() })
  .openapi('AccessEvaluation', { description: 'May this run write that (AuthZEN 1.0).' });

const EVALUATIONS = z
  .looseObject({
    subject: SUBJECT.optional(),
    resource: RESOURCE.optional(),
    action: ACTION.optional(),
    context: CONTEXT.optional(),
    evaluations: z
      .array(z.looseObject({}))
      .max(256)
      .optional()
      .openapi({ description: 'Each with what the members beside this one do not say for all.' }),
    options: z
      .looseObject({
        evaluations_semantic: z.enum(['execute_all', 'deny_on_first_deny', 'permit_on_first_permit']).optional(),
      })
      .optional()
      .openapi({ description: 'How many of them are answered.' }),
  })
  .openapi('AccessEvaluations', { description: 'Several questions, each decided for itself (AuthZEN 1.0).' });

const DECISION = z
  .object({
    decision: z.boolean().openapi({ description: 'Whether the write is let in.' }),
    context: z.looseObject({}).openapi({
      description:
        'reason, request_id, log_revision; message, observed_only, valid_for and admission_id where they apply; error, with status, reason and message, where it could not be decided.',
    }),
  })
  .openapi('AccessDecision', { description: 'The answer to one question (AuthZEN 1.0).' });

const json = (schema: z.ZodType) => ({ type: 'application/json', schema }) as const;

export const GATEWAY_PATHS: readonly GatewayPath[] = [
  {
    route: 'GET /v1/fence/check',
    operationId: 'checkFenceForProxy',
    comment:
      'Whether a proxy may let a request pass: all of it in headers, without a body. A denial has one status per class, and the reason in Writ-Reason and Writ-Problem; an answer without Writ-Reason is about the proxy itself. Role: target.',
    headers: ORIGINAL,
    answer: { description: 'It may pass.', type: 'text/plain', schema: z.string(), headers: LET_IN },
    denials: {
      400: 'The proxy said too little, or what the run asks for is malformed.',
      401: 'The proxy is not known, or what the run presents is not good.',
      403: 'The proxy may not ask, or the run never had the right to this write.',
      409: 'The run has no right to this write any more, or not now.',
      428: 'The write needs the version that it was made from.',
      503: 'It cannot be decided now.',
    },
  },
  {
    route: 'POST /oauth2/introspect',
    operationId: 'introspectToken',
    comment:
      'Whether a credential counts now, and what it says (RFC 7662). It says nothing about a write. Roles: target, runner, operator, admin, auditor.',
    body: {
      type: 'application/x-www-form-urlencoded',
      schema: z.object({ token: says('The credential.') }),
    },
    answer: {
      description: 'The claims, or that it does not count.',
      ...json(
        z
          .looseObject({
            active: z.boolean().openapi({ description: 'Whether it counts now; with its claims if so.' }),
          })
          .openapi('TokenIntrospection', { description: 'The answer of RFC 7662.' }),
      ),
    },
  },
  {
    route: 'POST /access/v1/evaluation',
    operationId: 'evaluateAccess',
    comment: 'Whether a run may write a resource, for who speaks AuthZEN: a denial is an answer. Role: target.',
    body: json(EVALUATION),
    answer: { description: 'The decision.', ...json(DECISION) },
  },
  {
    route: 'POST /access/v1/evaluations',
    operationId: 'evaluateAccesses',
    comment: 'The same for up to 256 questions, each decided for itself. Role: target.',
    body: json(EVALUATIONS),
    answer: {
      description: 'The decisions, in the order of the questions; of a body without any, the decision of that one.',
      ...json(
        z
          .object({ evaluations: z.array(DECISION).openapi({ description: 'In the order of the questions.' }) })
          .openapi('AccessDecisions', { description: 'The answers to several questions (AuthZEN 1.0).' })
          .or(DECISION),
      ),
    },
  },
];
