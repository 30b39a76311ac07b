import { z } from 'zod';
import { invalidArgument } from '../../domain/fault.js';

/**
 * Requests of the OpenID Authorization API 1.0 (AuthZEN). Members that it or Writ does not know are ignored, as it
 * demands; those that are known must be of their type.
 */

const text = z.string().min(1).max(16_384);
/** A fencing token: a decimal string, as it does not fit a JSON number everywhere. */
const token = z.string().regex(/^[1-9]\d{0,19}$/, { error: 'must be a decimal number, as a string' });
const thumbprint = z.string().regex(/^[A-Za-z0-9_-]{43}$/, { error: 'must be 43 base64url characters: a SHA-256' });

const subject = z.looseObject({
  type: text,
  id: text,
  properties: z
    .looseObject({
      credential: text.exactOptional(),
      lease_id: text.exactOptional(),
      fencing_token: token.exactOptional(),
      /** The key that the subject proved to the caller to have, as RFC 7800 names it. */
      cnf: z
        .union([z.strictObject({ 'x5t#S256': thumbprint }), z.strictObject({ jkt: thumbprint })], {
          error: 'must have x5t#S256 or jkt',
        })
        .exactOptional(),
    })
    .exactOptional(),
});

const resource = z.looseObject({
  type: text,
  id: text,
  properties: z.looseObject({ observed_version: text.exactOptional() }).exactOptional(),
});

const action = z.looseObject({ name: text, properties: z.looseObject({}).exactOptional() });

const context = z.looseObject({ namespace: z.string().exactOptional(), request_id: text.exactOptional() });

const evaluation = z.looseObject({ subject, resource, action, context: context.exactOptional() });

/** One question: may this subject do this to that. */
export type Evaluation = z.infer<typeof evaluation>;

const SEMANTICS = ['execute_all', 'deny_on_first_deny', 'permit_on_first_permit'] as const;
export type Semantic = (typeof SEMANTICS)[number];

const MAX_EVALUATIONS = 256;

const batch = z.looseObject({
  evaluations: z
    .array(z.looseObject({}))
    .max(MAX_EVALUATIONS, { error: `must be at most ${MAX_EVALUATIONS}` })
    .exactOptional(),
  options: z.looseObject({ evaluations_semantic: z.enum(SEMANTICS).exactOptional() }).exactOptional(),
});

export function readEvaluation(body: unknown): Evaluation {
  return parsed(evaluation, body, []);
}

/** Several questions, and how many of them are answered; null: there is but one, the request itself. */
export function readEvaluations(
  body: unknown,
): { readonly evaluations: readonly Evaluation[]; readonly semantic: Semantic } | null {
  const { evaluations = [], options, ...defaults } = parsed(batch, body, []);
  if (evaluations.length === 0) return null;
  const { subject, action, resource, context } = defaults as Partial<Record<string, unknown>>;
  const shared = Object.fromEntries(
    Object.entries({ subject, action, resource, context }).filter(([, value]) => value !== undefined),
  );
  return {
    evaluations: evaluations.map((own, at) => parsed(evaluation, { ...shared, ...own }, ['evaluations', at])),
    semantic: options?.evaluations_semantic ?? 'execute_all',
  };
}

function parsed<T>(schema: z.ZodType<T>, body: unknown, at: readonly PropertyKey[]): T {
  const result = schema.safeParse(body, { error: ({ input }) => (input === undefined ? 'is required' : undefined) });
  if (result.success) return result.data;
  throw invalidArgument(
    result.error.issues.map(({ path, message }) => ({
      field: [...at, ...path].join('.') || 'body',
      description: message,
    })),
  );
}
