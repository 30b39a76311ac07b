import { X509Certificate } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CertificateIndex } from '../../src/auth/certificates.js';
import { cli } from '../support/cli.js';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-certs-'));
});

afterEach(() => rm(directory, { recursive: true, force: true }));

const certs = (...args: string[]) => cli(['certs', '--dir', directory, ...args]);
const read = (name: string) => readFile(join(directory, name), 'utf8');
const certificate = async (name: string) => new X509Certificate(await read(name));

describe('writ certs', () => {
  it('makes an authority, a server certificate and clients, keys readable by their owner only', async () => {
    const { code, stdout } = await certs('--client', 'spiffe://example.org/ci', '--client', 'alice');
    expect(code).toBe(0);
    expect(stdout).toContain('For development only');
    expect((await readdir(directory)).sort()).toEqual([
      'ca-key.pem',
      'ca.pem',
      'client-alice-key.pem',
      'client-alice.pem',
      'client-example.org-ci-key.pem',
      'client-example.org-ci.pem',
      'server-key.pem',
      'server.pem',
    ]);
    const authority = await certificate('ca.pem');
    for (const name of ['server', 'client-alice', 'client-example.org-ci']) {
      const made = await certificate(`${name}.pem`);
      expect(made.verify(authority.publicKey)).toBe(true);
      expect(made.subject).toContain('not for production');
      createSecureContext({ cert: await read(`${name}.pem`), key: await read(`${name}-key.pem`) });
      expect((await stat(join(directory, `${name}-key.pem`))).mode & 0o777).toBe(0o600);
      expect((await stat(join(directory, `${name}.pem`))).mode & 0o777).toBe(0o644);
    }
    const server = await certificate('server.pem');
    expect([server.checkHost('localhost'), server.checkIP('127.0.0.1')]).toEqual(['localhost', '127.0.0.1']);
  });

  it('says what a principals file calls each client', async () => {
    const made = (await certs('--client', 'spiffe://example.org/ci', '--client', 'alice', '--json')).json() as {
      certificates: { name: string; known: string }[];
    };
    const entries = made.certificates
      .filter(({ name }) => name.startsWith('client-'))
      .map(({ name, known }) => ({ name, given: JSON.parse(known) as { spiffe_id?: string; subject?: string } }));
    const principals = entries.map(({ name, given }) => ({
      name,
      roles: [],
      certificates: [given.spiffe_id === undefined ? { subject: given.subject ?? '' } : { spiffeId: given.spiffe_id }],
    }));
    const byName = new Map(principals.map(({ name }) => [name, { name, roles: new Set<never>() }]));
    const index = new CertificateIndex(principals, byName);
    for (const { name } of entries)
      expect(index.read((await certificate(`${name}.pem`)).raw).principal?.name).toBe(name);
  });

  it('keeps an authority that is there, and replaces certificates only with --force', async () => {
    await certs('--host', 'writ.example', '--host', '10.0.0.7');
    const before = [await read('ca.pem'), await read('server.pem')];
    const again = await certs();
    expect(again.code).toBe(3);
    expect(again.stderr).toContain('server.pem is there already');
    expect([await read('ca.pem'), await read('server.pem')]).toEqual(before);
    expect((await certs('--force')).code).toBe(0);
    expect(await read('ca.pem')).toBe(before[0]);
    expect(await read('server.pem')).not.toBe(before[1]);
  });

  it.each([
    [['--host', 'a b'], /no host name/],
    [['--client', 'https://example.org'], /neither a SPIFFE id/],
    [['--client', 'a/b', '--client', 'a-b'], /Two clients would both be written/],
    [['--days', '400'], /at most 365/],
    [['--days', '0'], /whole number from 1/],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await certs(...args);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
    expect(await readdir(directory)).toEqual([]);
  });

  it('signs with no half of an authority', async () => {
    await writeFile(join(directory, 'ca.pem'), 'x');
    expect((await certs()).stderr).toContain('ca.pem and ca-key.pem go together');
  });
});

describe('the command line', () => {
  it('takes its TLS files from options and variables, and no dev token beside a client certificate', async () => {
    const namespaces = { namespaces: { listNamespaces: async () => ({ namespaces: [], nextPageToken: '' }) } };
    const env = {
      WRIT_TOKEN: '',
      WRIT_CA_FILE: '/tls/ca.pem',
      WRIT_CLIENT_CERT_FILE: '/tls/c.pem',
      WRIT_CLIENT_KEY_FILE: '/tls/k.pem',
    };
    const [one] = (await cli(['namespace', 'list'], { env, client: namespaces })).connected;
    expect(one).toMatchObject({ tls: { caFile: '/tls/ca.pem', certFile: '/tls/c.pem', keyFile: '/tls/k.pem' } });
    expect(one).not.toHaveProperty('token');
    const options = ['--ca-file', '/other.pem', 'namespace', 'list'];
    const [two] = (await cli(options, { env: { WRIT_ALLOW_INSECURE: 'beyond-loopback' }, client: namespaces }))
      .connected;
    expect(two).toMatchObject({ token: 'test-token', tls: { caFile: '/other.pem' }, allowInsecure: 'beyond-loopback' });
  });
});
