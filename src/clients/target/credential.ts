import { z } from 'zod';
import { covers } from '../../route-table/segment.js';

/** The claims of a credential, as Writ issues them: a JWT access token (RFC 9068) with authorization_details (RFC 9396). */

const seconds = z.int().min(0);
const text = z.string().min(1).max(1_024);
const names = z.array(text).max(256);

const writeSetGroup = z.strictObject({
  type: z.literal('writ_write_set'),
  locations: z.tuple([text]),
  actions: names.min(1),
  resources: names.min(1),
  fence: z.string().regex(/^[1-9]\d{0,15}$/),
  scope: z.enum(['exact', 'subtree']),
  concurrency: z.enum(['lease', 'optimistic']),
});

/** Instead of more than 25 resources: only the coordinator's check can resolve it. */
const writeSetDigest = z.strictObject({
  type: z.literal('writ_write_set'),
  locations: z.tuple([text]),
  digest: z.string().regex(/^sha-256:[\w-]{43}$/),
});

/** Says that nothing may be written with it (C4). */
const propose = z.strictObject({ type: z.literal('writ_propose'), locations: z.tuple([text]), resources: names });

const confirmation = z.union([
  z.strictObject({ 'x5t#S256': z.string().regex(/^[\w-]{43}$/) }),
  z.strictObject({ jkt: z.string().regex(/^[\w-]{43}$/) }),
]);

export const claimsSchema = z.object({
  iss: text,
  aud: text,
  sub: text,
  client_id: text,
  act: z.object({ sub: text }),
  jti: text,
  iat: seconds,
  exp: seconds,
  txn: text,
  namespace: text,
  lease_id: text.optional(),
  cnf: confirmation.optional(),
  authorization_details: z
    .array(z.union([writeSetGroup, writeSetDigest, propose]))
    .min(1)
    .max(64),
});

export type Claims = z.infer<typeof claimsSchema>;

/** What is about to be written, in the names of the conflict map. */
export interface CredentialQuestion {
  /** The path in normal form, as the target maps its own routes to it. */
  readonly resource: string;
  readonly action: string;
}

/** Whether a verified credential allows one write. */
export type CredentialAnswer =
  | {
      readonly allowed: true;
      /** Of the resource: for the guard where the data lives. */
      readonly fencingToken: bigint;
      /** True: the write must carry the version it is based on, and be made under that condition (C8). */
      readonly versionRequired: boolean;
    }
  | {
      readonly allowed: false;
      readonly reason: 'no_write_authority' | 'digest_needs_check' | 'not_covered' | 'action_not_allowed';
      readonly message: string;
    };

/**
 * A credential that was verified: who may write what, here and until when. It says nothing about whether the lease still
 * lives; for kinds with `validation: local` that is by design, for all others ask the coordinator (`checkFence`).
 */
export class Credential {
  constructor(readonly claims: Claims) {}

  get runId(): string {
    return this.claims.sub;
  }

  get namespace(): string {
    return this.claims.namespace;
  }

  /** Undefined: it was issued without a lease and allows no write. */
  get leaseId(): string | undefined {
    return this.claims.lease_id;
  }

  /** Correlates what is done under one lease, over all renewals of the credential; safe to log. */
  get correlationId(): string {
    return this.claims.txn;
  }

  /** Seconds since 1970; a verifier refuses it then. */
  get expiresAt(): number {
    return this.claims.exp;
  }

  /** Whether one write is covered: the resource, or a subtree it is in, and the action (P4, P10). */
  covers({ resource, action }: CredentialQuestion): CredentialAnswer {
    const details = this.claims.authorization_details;
    if (details.some((detail) => 'digest' in detail)) {
      return refuse('digest_needs_check', 'The write set is too large for the credential: ask the coordinator.');
    }
    const groups = details.filter((detail) => detail.type === 'writ_write_set' && 'fence' in detail);
    if (groups.length === 0) return refuse('no_write_authority', 'The credential gives no authority to write.');
    const covering = groups.filter(({ resources, scope }) =>
      resources.some((path) => covers({ resource: path, scope }, resource)),
    );
    if (covering.length === 0) {
      return refuse('not_covered', `The credential does not cover ${JSON.stringify(resource)}: it was never declared.`);
    }
    const group = covering.find(({ actions }) => actions.includes(action));
    if (group === undefined) {
      return refuse(
        'action_not_allowed',
        `The credential covers ${JSON.stringify(resource)}, but not the action ${JSON.stringify(action)}.`,
      );
    }
    // The newest of the resource, whatever brings the action: once a guard has seen that, it takes no older one.
    let fencingToken = 0n;
    for (const { fence } of covering) if (BigInt(fence) > fencingToken) fencingToken = BigInt(fence);
    return {
      allowed: true,
      fencingToken,
      versionRequired: group.concurrency === 'optimistic',
    };
  }
}

function refuse(reason: Extract<CredentialAnswer, { allowed: false }>['reason'], message: string): CredentialAnswer {
  return { allowed: false, reason, message };
}
