import { z } from 'zod';
import type { Ceiling } from '../domain/ceiling.js';
import { parsePattern } from '../domain/pattern.js';
import { parseDuration } from '../platform/durations.js';
import { isLoopback } from '../platform/settings.js';
import { isClaimPattern } from './claims.js';
import { ROLES } from './principal.js';
import { PRINCIPAL_NAME, RESERVED_NAME } from './principal-entry.js';

/** The schema of a principals file: closed, so that a misspelt key is an error and not a missing right. */

const MINUTE = 60e6;
const DAY = 86_400e6;

const name = z
  .string()
  .regex(PRINCIPAL_NAME, 'must be 1 to 128 printable ASCII characters without spaces')
  .refine((text) => text !== RESERVED_NAME, 'is what the log calls the coordinator itself');

const roles = z.array(z.enum(ROLES)).min(1, 'must name at least one role');

const namespaces = z
  .record(z.string().regex(/^[a-z][a-z0-9-]{0,63}$/, 'must be the name of a namespace'), roles)
  .refine((places) => Object.keys(places).length > 0, 'must name at least one namespace')
  .refine((places) => Object.keys(places).length <= 1_000, 'must name at most 1000 namespaces');

function duration(least: number, most: number, range: string) {
  return z.string().transform((text, context): number => {
    const micros = parseDuration(text);
    if (micros !== null && micros >= least && micros <= most) return micros;
    context.issues.push({ code: 'custom', input: text, message: `must be a duration from ${range}` });
    return z.NEVER;
  });
}

const count = z.int().min(0, 'must be 0 or more').max(1e9);

const allowance = z.strictObject({
  pattern: z
    .string()
    .refine((text) => parsePattern(text).ok, 'must be a pattern of resources, such as "release/{env}"'),
  actions: z
    .array(z.string().regex(/^(\*|[A-Za-z0-9._:-]{1,64})$/, 'must be the name of an action, or "*"'))
    .max(32)
    .refine((actions) => !actions.includes('*') || actions.length === 1, '"*" must stand alone'),
});

const ceiling = z.strictObject({
  allowed: z.array(allowance).max(256).optional(),
  max_ttl: duration(1e6, 3600e6, '1s to 1h').optional(),
  max_authority: duration(1e6, 30 * DAY, '1s to 30d').optional(),
  latest_end: z.iso
    .datetime({ offset: true, error: 'must be a time with a zone, such as 2026-12-01T10:00:00Z' })
    .optional(),
  max_live_runs: count.optional(),
  max_live_leases: count.optional(),
});

/** The ceiling of an entry, in the domain's units. */
export function toCeiling(given: z.infer<typeof ceiling>): Ceiling {
  return {
    allowed: given.allowed ?? null,
    maxTtl: given.max_ttl ?? null,
    maxAuthority: given.max_authority ?? null,
    latestEnd: given.latest_end === undefined ? null : Date.parse(given.latest_end) * 1_000,
    maxLiveRuns: given.max_live_runs ?? null,
    maxLiveLeases: given.max_live_leases ?? null,
  };
}

const SPIFFE_ID = /^spiffe:\/\/[a-z0-9._-]{1,255}(\/[A-Za-z0-9._-]+)*$/;

const spiffeId = z
  .string()
  .max(2_048)
  .regex(SPIFFE_ID, 'must be a SPIFFE id, such as spiffe://example.org/ns/ci/sa/release')
  .refine((id) => !/\/\.{1,2}(\/|$)/.test(id), 'must not contain "." or ".." as a part of its path');

const certificate = z.union(
  [
    z.strictObject({ spiffe_id: spiffeId }),
    z.strictObject({ subject: z.string().min(1).max(1_024).includes('=', 'must be a subject, such as "CN=runner"') }),
  ],
  'must be {"spiffe_id": "spiffe://…"} or {"subject": "CN=…, O=…"}',
);

const principal = z
  .strictObject({
    name,
    roles: roles.optional(),
    namespaces: namespaces.optional(),
    token_sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/i, 'must be 64 hexadecimal digits')
      .optional(),
    certificates: z.array(certificate).min(1).max(100).optional(),
    ceiling: ceiling.optional(),
  })
  .refine((entry) => entry.roles !== undefined || entry.namespaces !== undefined, {
    path: ['roles'],
    error: 'give roles, or namespaces with roles, or both',
  });

/** `none` and everything keyed by a shared secret are missing on purpose (F18). */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

const claimPattern = z
  .string()
  .min(1)
  .max(512)
  .refine(isClaimPattern, 'may have at most 4 of "*" and "**", and none beside another');

const mapping = z
  .strictObject({
    claims: z
      .record(z.string().min(1).max(128), claimPattern)
      .refine((claims) => Object.keys(claims).length > 0, 'must name at least one claim')
      .refine((claims) => Object.keys(claims).length <= 16, 'must name at most 16 claims'),
    principal: z.string().min(1).max(256),
    roles: roles.optional(),
    namespaces: namespaces.optional(),
    ceiling: ceiling.optional(),
  })
  .superRefine((entry, context) => {
    const template = entry.principal.includes('{');
    const rights = entry.roles !== undefined || entry.namespaces !== undefined;
    const issue = (field: string, message: string) =>
      context.addIssue({ code: 'custom', path: [field], message, input: entry });
    if (template && !rights) issue('roles', 'a template needs roles, or namespaces with roles, or both');
    if (!template && rights) issue('roles', 'are those of the principal; only a template brings its own');
    if (!template && entry.ceiling !== undefined)
      issue('ceiling', 'is that of the principal; only a template brings its own');
  });

/** Keys that travel in the clear could be anybody's. */
function isSafeUri(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '' || url.hash !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}

const MUST_BE_HTTPS = 'must be an https URL';

const issuer = z
  .strictObject({
    issuer: z.string().min(1).max(1_024),
    audience: z.union([z.string().min(1).max(1_024), z.array(z.string().min(1).max(1_024)).min(1).max(16)]),
    jwks_file: z.string().min(1).optional(),
    jwks_uri: z.string().refine(isSafeUri, MUST_BE_HTTPS).optional(),
    discovery: z.literal(true, 'must be true, or left out').optional(),
    algorithms: z
      .array(
        z.enum(
          ALGORITHMS,
          `must be one of ${ALGORITHMS.join(', ')}: algorithms with a shared secret, and none, prove nothing`,
        ),
      )
      .min(1, 'must name at least one algorithm'),
    typ: z.string().min(1).max(64).optional(),
    max_token_age: duration(MINUTE, 30 * DAY, '1m to 30d').default(DAY),
    clock_tolerance: duration(0, 5 * MINUTE, '0s to 5m').default(5e6),
    mappings: z.array(mapping).max(1_000).default([]),
    initiator_claim: z.string().min(1).max(128).optional(),
  })
  .superRefine((entry, context) => {
    const issue = (field: string, message: string) =>
      context.addIssue({ code: 'custom', path: [field], message, input: entry });
    const sources = [entry.jwks_file, entry.jwks_uri, entry.discovery].filter((source) => source !== undefined);
    if (sources.length !== 1) issue('jwks_file', 'give exactly one of jwks_file, jwks_uri and discovery');
    if (entry.mappings.length === 0 && entry.initiator_claim === undefined)
      issue('mappings', 'must have at least one mapping, unless there is an initiator_claim');
    if (entry.discovery === true && !isSafeUri(entry.issuer)) issue('issuer', `${MUST_BE_HTTPS} to be discovered`);
  });

export const fileSchema = z.strictObject({
  principals: z.array(principal).max(10_000),
  issuers: z
    .array(issuer)
    .max(100)
    .superRefine((all, context) => {
      all.forEach(({ issuer: own }, index) => {
        if (all.findIndex((other) => other.issuer === own) < index)
          context.addIssue({ code: 'custom', path: [index, 'issuer'], message: 'is named twice', input: own });
      });
    })
    .optional(),
});

type FileShape = z.infer<typeof fileSchema>;
export type FileEntry = FileShape['principals'][number];
export type IssuerShape = NonNullable<FileShape['issuers']>[number];
