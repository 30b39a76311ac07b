import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, generateKeyPair } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PrincipalsFileError } from '../../src/auth/principal-entry.js';
import { type PrincipalsFile, readPrincipalsFile } from '../../src/auth/principals-file.js';
import { hashToken, makeToken } from '../../src/auth/tokens.js';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-principals-'));
});

afterEach(() => rm(directory, { recursive: true, force: true }));

async function read(content: unknown): Promise<PrincipalsFile> {
  const path = join(directory, 'principals.json');
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return readPrincipalsFile(path);
}

const runner = { name: 'a', roles: ['runner'], token_sha256: hashToken('x') };
const mapping = { claims: { sub: 'x' }, principal: 'a' };
const issuer = {
  issuer: 'https://issuer.example',
  audience: 'writ',
  discovery: true,
  algorithms: ['RS256'],
  mappings: [mapping],
};

describe('a principals file', () => {
  it('with tokens alone is what it was', async () => {
    const { tokenSha256 } = makeToken();
    const content = {
      principals: [{ name: 'a', roles: ['runner', 'target'], token_sha256: tokenSha256.toUpperCase() }],
    };
    expect((await read(content)).principals).toEqual([{ name: 'a', roles: ['runner', 'target'], tokenSha256 }]);
  });

  it('gives roles by namespace, certificates and a ceiling', async () => {
    const { principals } = await read({
      principals: [
        {
          name: 'svc:ci',
          namespaces: { 'team-a': ['runner'] },
          certificates: [{ spiffe_id: 'spiffe://example.org/ci' }, { subject: 'CN=ci, O=Example' }],
          ceiling: {
            allowed: [{ pattern: 'release/{env}', actions: ['promote'] }],
            max_ttl: '60s',
            max_authority: '8h',
            latest_end: '2027-01-01T00:00:00Z',
            max_live_runs: 3,
            max_live_leases: 0,
          },
        },
      ],
    });
    expect(principals).toEqual([
      {
        name: 'svc:ci',
        roles: [],
        namespaceRoles: { 'team-a': ['runner'] },
        certificates: [{ spiffeId: 'spiffe://example.org/ci' }, { subject: 'CN=ci, O=Example' }],
        ceiling: {
          allowed: [{ pattern: 'release/{env}', actions: ['promote'] }],
          maxTtl: 60_000_000,
          maxAuthority: 28_800_000_000,
          latestEnd: 1_798_761_600_000_000,
          maxLiveRuns: 3,
          maxLiveLeases: 0,
        },
      },
    ]);
  });

  it('names issuers, with their keys, bounds and mappings', async () => {
    const { publicKey } = await generateKeyPair('ES256');
    await writeFile(join(directory, 'keys.json'), JSON.stringify({ keys: [await exportJWK(publicKey)] }));
    const { discovery: _, ...rest } = issuer;
    const file = await read({ principals: [runner], issuers: [{ ...rest, jwks_file: 'keys.json' }] });
    expect(file.issuers).toMatchObject([
      {
        audience: ['writ'],
        algorithms: ['RS256'],
        typ: null,
        maxTokenAgeSeconds: 86_400,
        clockToleranceSeconds: 5,
        keys: { kind: 'file', file: join(directory, 'keys.json') },
        mappings: [{ claims: { sub: 'x' }, principal: 'a', roles: [] }],
      },
    ]);
    expect(file.files).toEqual([join(directory, 'principals.json'), join(directory, 'keys.json')]);
  });

  const withPrincipal = (more: object) => ({ principals: [{ ...runner, ...more }] });
  const withIssuer = (more: object) => ({ principals: [runner], issuers: [{ ...issuer, ...more }] });
  const withMapping = (more: object) => withIssuer({ mappings: [{ ...mapping, ...more }] });
  const template = { principal: 'ci:{repository}', roles: ['runner'] };

  it.each([
    ['is not JSON', 'principals:'],
    ['principals', {}],
    ['principals.0.name', withPrincipal({ name: 'a b' })],
    ['principals.0.name', withPrincipal({ name: 'system' })],
    ['principals.0.roles', withPrincipal({ roles: [] })],
    ['principals.0.roles', { principals: [{ name: 'a', token_sha256: hashToken('x') }] }],
    ['principals.0.roles.0', withPrincipal({ roles: ['root'] })],
    ['principals.0.token_sha256', withPrincipal({ token_sha256: 'writ_secret' })],
    ['principals.0', withPrincipal({ token: 'y' })],
    ['principals.0.namespaces.Team A', withPrincipal({ namespaces: { 'Team A': ['runner'] } })],
    ['principals.0.namespaces.a.0', withPrincipal({ namespaces: { a: ['root'] } })],
    ['principals.0.certificates.0', withPrincipal({ certificates: [{ spiffe_id: 'https://example.org' }] })],
    ['principals.0.certificates.0', withPrincipal({ certificates: [{ spiffe_id: 'spiffe://a/../b' }] })],
    ['principals.0.certificates.0', withPrincipal({ certificates: [{ cn: 'x' }] })],
    ['principals.0.ceiling.max_ttl', withPrincipal({ ceiling: { max_ttl: '2h' } })],
    ['principals.0.ceiling.latest_end', withPrincipal({ ceiling: { latest_end: 'tomorrow' } })],
    [
      'principals.0.ceiling.allowed.0.pattern',
      withPrincipal({ ceiling: { allowed: [{ pattern: 'a//b', actions: [] }] } }),
    ],
    [
      'principals: a: has two entries',
      { principals: [runner, { ...runner, roles: ['admin'], token_sha256: hashToken('y') }] },
    ],
    ['principals: a: has two entries', { principals: [runner, { ...runner, ceiling: { max_live_runs: 1 } }] }],
    ['issuers.0.algorithms.0', withIssuer({ algorithms: ['none'] })],
    ['issuers.0.algorithms.0', withIssuer({ algorithms: ['HS256'] })],
    ['issuers.0.algorithms', withIssuer({ algorithms: [] })],
    ['issuers.0.algorithms', withIssuer({ algorithms: undefined })],
    ['issuers.0.audience', withIssuer({ audience: undefined })],
    ['issuers.0.audience', withIssuer({ audience: [] })],
    ['issuers.0.jwks_file', withIssuer({ discovery: undefined })],
    ['issuers.0.jwks_file', withIssuer({ jwks_uri: 'https://issuer.example/keys' })],
    ['issuers.0.jwks_uri', withIssuer({ discovery: undefined, jwks_uri: 'http://issuer.example/keys' })],
    ['issuers.0.issuer', withIssuer({ issuer: 'http://issuer.example' })],
    ['issuers.1.issuer', { principals: [runner], issuers: [issuer, issuer] }],
    ['issuers.0.max_token_age', withIssuer({ max_token_age: '1s' })],
    ['issuers.0.clock_tolerance', withIssuer({ clock_tolerance: '1h' })],
    ['issuers.0.mappings.0.claims', withMapping({ claims: {} })],
    ['issuers.0.mappings.0.claims.sub', withMapping({ claims: { sub: 'a***b' } })],
    ['issuers.0.mappings.0.principal', withMapping({ principal: 'nobody' })],
    ['issuers.0.mappings.0.roles', withMapping({ roles: ['admin'] })],
    ['issuers.0.mappings.0.roles', withMapping({ principal: 'ci:{repository}' })],
    ['issuers.0.mappings.0.principal', withMapping({ ...template, principal: '{sub}' })],
    ['issuers.0.mappings.0.principal', withMapping({ ...template, principal: 'ci:{a}{b}' })],
    ['issuers.0.mappings.0.principal', withMapping({ ...template, principal: 'ci:{a' })],
    [
      'issuers.1.mappings.0.principal',
      {
        principals: [runner],
        issuers: [
          { ...issuer, mappings: [{ ...mapping, ...template }] },
          {
            ...issuer,
            issuer: 'https://other.example',
            mappings: [{ ...mapping, ...template, principal: 'ci:x{sub}' }],
          },
        ],
      },
    ],
    ['keys.json: cannot be read', withIssuer({ discovery: undefined, jwks_file: 'keys.json' })],
  ])('is refused by file and field: %s', async (where, content) => {
    const failing = read(content);
    await expect(failing).rejects.toThrow(PrincipalsFileError);
    await expect(failing).rejects.toThrow(`${directory}/`);
    await expect(failing).rejects.toThrow(where);
  });

  it('takes no key set with private or shared keys', async () => {
    const { privateKey } = await generateKeyPair('ES256', { extractable: true });
    for (const key of [await exportJWK(privateKey), { kty: 'oct', k: 'c2VjcmV0' }]) {
      await writeFile(join(directory, 'keys.json'), JSON.stringify({ keys: [key] }));
      const failing = read(withIssuer({ discovery: undefined, jwks_file: 'keys.json' }));
      await expect(failing).rejects.toThrow('keys.json: keys: must be a JSON Web Key Set');
    }
  });

  it('is missed by name', async () => {
    await expect(readPrincipalsFile(join(directory, 'nowhere'))).rejects.toThrow(/nowhere: cannot be read/);
  });
});
