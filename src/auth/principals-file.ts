import { readFile, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { JSONWebKeySet } from 'jose';
import { z } from 'zod';
import { claimsProblems, type MappingEntry } from './claims.js';
import type { IssuerEntry } from './issuers.js';
import { parseJsonFile } from './json-file.js';
import { type PrincipalEntry, PrincipalsFileError, principalsOf } from './principal-entry.js';
import { type FileEntry, fileSchema, type IssuerShape, toCeiling } from './principals-schema.js';

/** What a principals file (WRIT_TOKENS_FILE) says. */
export interface PrincipalsFile {
  readonly principals: readonly PrincipalEntry[];
  readonly issuers: readonly IssuerEntry[];
  /** The file itself and the key sets that it names, absolute: what to look at for changes. */
  readonly files: readonly string[];
  /** Its text. */
  readonly text: string;
}

const MAX_BYTES = 8 << 20;
const MAX_KEY_SET_BYTES = 1 << 20;

/** Reads and validates a principals file; throws a PrincipalsFileError with one line per problem, each with file and field. */
export async function readPrincipalsFile(path: string): Promise<PrincipalsFile> {
  const text = await readBounded(path, MAX_BYTES);
  const parsed = fileSchema.safeParse(parseJsonFile(text, path));
  if (!parsed.success) {
    const lines = parsed.error.issues.map(
      ({ path: field, message }) => [field.join('.') || 'the file', message] as const,
    );
    throw problems(path, lines);
  }
  const principals = parsed.data.principals.map(toPrincipalEntry);
  const issuers: IssuerEntry[] = [];
  for (const issuer of parsed.data.issuers ?? []) issuers.push(await toIssuer(issuer, path));
  try {
    principalsOf(principals);
  } catch (error) {
    throw problems(path, [['principals', (error as Error).message]]);
  }
  const unfit = claimsProblems(
    new Set(principals.map(({ name }) => name)),
    issuers.map(({ mappings }) => mappings),
  );
  if (unfit.length > 0)
    throw problems(
      path,
      unfit.map(
        ({ issuer, mapping, problem }) => [`issuers.${issuer}.mappings.${mapping}.principal`, problem] as const,
      ),
    );
  const keyFiles = issuers.flatMap(({ keys }) => (keys.kind === 'file' ? [keys.file] : []));
  return { principals, issuers, files: [path, ...keyFiles], text };
}

function problems(path: string, lines: readonly (readonly [field: string, message: string])[]): PrincipalsFileError {
  return new PrincipalsFileError(lines.map(([field, message]) => `${path}: ${field}: ${message}`).join('\n'));
}

async function readBounded(path: string, most: number): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size <= most) return await readFile(path, 'utf8');
  } catch (error) {
    throw new PrincipalsFileError(`${path}: cannot be read (${(error as Error).message})`, { cause: error });
  }
  throw new PrincipalsFileError(`${path}: is larger than ${most} bytes`);
}

function toPrincipalEntry(entry: FileEntry): PrincipalEntry {
  const { name, roles, namespaces, ceiling, token_sha256, certificates } = entry;
  return {
    name,
    roles: roles ?? [],
    ...(namespaces === undefined ? {} : { namespaceRoles: namespaces }),
    ...(ceiling === undefined ? {} : { ceiling: toCeiling(ceiling) }),
    ...(token_sha256 === undefined ? {} : { tokenSha256: token_sha256.toLowerCase() }),
    ...(certificates === undefined
      ? {}
      : {
          certificates: certificates.map((one) =>
            'spiffe_id' in one ? { spiffeId: one.spiffe_id } : { subject: one.subject },
          ),
        }),
  };
}

async function toIssuer(issuer: IssuerShape, path: string): Promise<IssuerEntry> {
  return {
    issuer: issuer.issuer,
    audience: typeof issuer.audience === 'string' ? [issuer.audience] : issuer.audience,
    algorithms: issuer.algorithms,
    typ: issuer.typ ?? null,
    maxTokenAgeSeconds: issuer.max_token_age / 1e6,
    clockToleranceSeconds: issuer.clock_tolerance / 1e6,
    keys: await keysOf(issuer, path),
    mappings: issuer.mappings.map(toMapping),
    initiatorClaim: issuer.initiator_claim ?? null,
  };
}

async function keysOf(issuer: IssuerShape, path: string): Promise<IssuerEntry['keys']> {
  if (issuer.jwks_uri !== undefined) return { kind: 'uri', uri: issuer.jwks_uri };
  if (issuer.jwks_file === undefined) return { kind: 'discovery' };
  const file = resolve(dirname(path), issuer.jwks_file);
  const parsed = keySet.safeParse(parseJsonFile(await readBounded(file, MAX_KEY_SET_BYTES), file));
  if (!parsed.success) throw problems(file, [['keys', 'must be a JSON Web Key Set with at least one public key']]);
  return { kind: 'file', file, jwks: parsed.data as unknown as JSONWebKeySet };
}

/** A key that signs or that both sides share has no business here. */
const keySet = z.looseObject({
  keys: z
    .array(z.looseObject({ kty: z.enum(['RSA', 'EC', 'OKP']), d: z.undefined().optional() }))
    .min(1)
    .max(100),
});

function toMapping(mapping: IssuerShape['mappings'][number]): MappingEntry {
  const { claims, principal, roles, namespaces, ceiling } = mapping;
  return {
    claims,
    principal,
    roles: roles ?? [],
    ...(namespaces === undefined ? {} : { namespaceRoles: namespaces }),
    ...(ceiling === undefined ? {} : { ceiling: toCeiling(ceiling) }),
  };
}
