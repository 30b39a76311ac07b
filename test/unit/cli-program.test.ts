import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { WritError } from '../../src/clients/common/errors.js';
import { ReleaseLeaseResponse, ReleaseOutcome } from '../../src/gen/writ/v1/lease_service.js';
import { GetNamespaceResponse, ListNamespacesResponse } from '../../src/gen/writ/v1/namespace_service.js';
import { cli } from '../support/cli.js';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-cli-test-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const namespaces = {
  namespaces: {
    listNamespaces: async () =>
      ListNamespacesResponse.fromPartial({
        namespaces: [{ name: 'default', createdAt: { seconds: 1_764_425_000n, nanos: 0 } }],
      }),
  },
};
const failing = (error: unknown) => ({ namespaces: { listNamespaces: () => Promise.reject(error) } });

describe('the command line', () => {
  it.each([[['--help']], [['lease', '--help']], [['lease', 'acquire', '--help']], [['--version']]])(
    '%j is no error',
    async (args) => {
      const { code, stdout } = await cli(args);
      expect(code).toBe(0);
      expect(stdout).not.toBe('');
    },
  );

  it.each([
    [[]],
    [['frob']],
    [['lease']],
    [['lease', 'frob']],
    [['lease', 'acquire']],
    [['lease', 'get']],
    [['lease', 'get', 'a', 'b']],
    [['status', '--frob']],
    [['status', '--as', 'king']],
    [['lease', 'renew', 'x', '--run', 'r', '--ttl', 'soon']],
    [['check', '--lease', 'l', '--resource', 'r', '--action', 'a', '--token', '-1']],
    [['run', 'create', '--purpose', 'x', '--allow', 'release/{env}']],
    [['run', 'create', '--purpose', 'x', '--for', '1h', '--until', '2026-12-01T10:00:00Z']],
    [['run', 'stop-all', '--reason', 'x']],
    [['lease', 'release', '--run', 'r']],
    [['lease', 'acquire', '--run', 'r']],
    [['lease', 'acquire', '--run', 'r', '--resource', 'a', '--task', 't']],
    [['exec', '--resource', 'a']],
    [['completion', 'csh']],
    [['token', '--name', 'x', '--role', 'king']],
    [['token', '--name', 'system', '--role', 'runner']],
    [['migrate']],
    [['map', 'rollback', 'x']],
  ])('%j is a wrong one (2)', async (args) => {
    const { code, stderr } = await cli(args);
    expect([code, stderr === '']).toEqual([2, false]);
  });

  it.each([
    [[], '--help'],
    [['lease'], '--help'],
    [['frob'], 'frob'],
    [['lease', 'acquire'], '--run'],
    [['status', '--frob'], '--frob'],
    [['run', 'create', '--purpose', 'x', '--allow', 'release/{env}'], 'release/{env}'],
    [['exec', '--frob', '--', 'cat', '--json'], ''],
  ])('%j is told to machines as every other error is', async (args, named) => {
    const isAsked = !args.includes('--');
    const { code, stdout, stderr } = await cli(isAsked ? ['--json', ...args] : args);
    expect([code, stdout]).toEqual([2, '']);
    if (!isAsked) return expect(stderr).toMatch(/^error: /);
    expect(JSON.parse(stderr)).toMatchObject({ error: { message: expect.stringContaining(named) }, exitCode: 2 });
    return undefined;
  });

  it('tells machines what is wrong with the environment', async () => {
    const { code, stderr } = await cli(['--json', 'status'], { env: { WRIT_ENDPOINT: 'a b' } });
    expect([code, JSON.parse(stderr).exitCode]).toEqual([2, 2]);
  });

  it('takes the global options before and after the command', async () => {
    for (const args of [
      ['--endpoint', 'h:1', '--namespace', 'n', '--timeout', '3s', 'namespace', 'list', '--json'],
      ['namespace', 'list', '--json', '--timeout', '3s', '--namespace', 'n', '--endpoint', 'h:1'],
    ]) {
      const { code, connected, json } = await cli(args, { client: namespaces });
      expect(code).toBe(0);
      expect(connected).toEqual([{ endpoint: 'h:1', namespace: 'n', timeoutMs: 3_000, token: 'test-token' }]);
      expect(json()).toHaveProperty('namespaces');
    }
  });
});

describe('whom it calls, and as whom', () => {
  it('has a default, which the port and the endpoint of the environment change', async () => {
    const endpointWith = async (env: Record<string, string>) =>
      (await cli(['namespace', 'list'], { env, client: namespaces })).connected[0]?.endpoint;
    expect(await endpointWith({})).toBe('127.0.0.1:7410');
    expect(await endpointWith({ WRIT_GRPC_PORT: '9000' })).toBe('127.0.0.1:9000');
    expect(await endpointWith({ WRIT_GRPC_PORT: '0' })).toBe('127.0.0.1:7410');
    expect(await endpointWith({ WRIT_GRPC_PORT: '9000', WRIT_ENDPOINT: 'h:1' })).toBe('h:1');
    expect((await cli(['status'], { env: { WRIT_ENDPOINT: 'nonsense' } })).code).toBe(2);
  });

  it('takes the token of the option, of the environment, or of the role in the data directory, in this order', async () => {
    await writeFile(
      join(directory, 'dev-tokens.json'),
      JSON.stringify({ admin: 'dev-admin', operator: 'dev-operator' }),
    );
    await writeFile(join(directory, 'token'), 'of-file\n');
    await writeFile(join(directory, 'bad'), 'two words');
    const token = async (args: string[], env: Record<string, string>) =>
      (await cli(['namespace', 'list', ...args], { env: { WRIT_DATA_DIR: directory, ...env }, client: namespaces }))
        .connected[0]?.token;
    const file = join(directory, 'token');
    expect(await token(['--token-file', file], { WRIT_TOKEN: 'of-env' })).toBe('of-file');
    expect(await token([], { WRIT_TOKEN: 'of-env', WRIT_TOKEN_FILE: file })).toBe('of-env');
    expect(await token([], { WRIT_TOKEN: '', WRIT_TOKEN_FILE: file })).toBe('of-file');
    expect(await token([], { WRIT_TOKEN: '' })).toBe('dev-admin');
    expect(await token(['--as', 'operator'], { WRIT_TOKEN: 'of-env' })).toBe('dev-operator');
    expect((await cli(['namespace', 'list', '--token-file', join(directory, 'bad')])).code).toBe(2);
    expect((await cli(['namespace', 'list', '--token-file', '/no/such'])).code).toBe(2);
  });

  it('says where it looked for a token (77)', async () => {
    for (const env of [
      { WRIT_TOKEN: '', WRIT_DATA_DIR: '/no/such' },
      { WRIT_TOKEN: '', WRIT_DATA_DIR: directory },
    ]) {
      const { code, stderr } = await cli(['audit', 'checkpoint'], { env });
      expect(code).toBe(77);
      expect(stderr).toContain('dev-tokens.json');
    }
  });
});

it('the status of one namespace needs no list of all, which a database that is away would refuse', async () => {
  const client = {
    namespaces: {
      listNamespaces: () => Promise.reject(new WritError('UNAVAILABLE', 'a database is away')),
      getNamespace: async () => GetNamespaceResponse.fromPartial({ namespace: { name: 'team' } }),
    },
    run: { listRuns: async () => ({ runs: [], nextPageToken: '' }) },
    lease: {
      listFreezes: async () => ({ freezes: [], nextPageToken: '' }),
      listInDoubt: async () => ({ writes: [], nextPageToken: '' }),
    },
  };
  const { code, stdout } = await cli(['status', '--namespace', 'team'], { client });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^team /m);
});

describe('what went wrong', () => {
  it.each([
    ['INVALID_ARGUMENT', 2],
    ['NOT_FOUND', 6],
    ['UNAUTHENTICATED', 77],
    ['PERMISSION_DENIED', 77],
    ['UNAVAILABLE', 5],
    ['DEADLINE_EXCEEDED', 5],
    ['ABORTED', 3],
    ['ALREADY_EXISTS', 3],
    ['FAILED_PRECONDITION', 3],
    ['RESOURCE_EXHAUSTED', 3],
    ['INTERNAL', 1],
    ['UNKNOWN', 1],
  ] as const)('%s ends with %d', async (code, exit) => {
    const result = await cli(['namespace', 'list'], { client: failing(new WritError(code, 'words')) });
    expect([result.code, result.stdout]).toEqual([exit, '']);
    expect(result.stderr).toContain('words');
  });

  it('is told field by field, with the request id', async () => {
    const error = new WritError('INVALID_ARGUMENT', 'a: bad; b: worse', {
      reason: 'INVALID_ARGUMENT',
      requestId: 'r-1',
      violations: [
        { field: 'a', description: 'bad' },
        { field: 'b', description: 'worse' },
      ],
    });
    const human = await cli(['namespace', 'list'], { client: failing(error) });
    expect(human.stderr).toBe(
      'error: The request is not valid.\n  a: bad\n  b: worse\n(request id r-1, INVALID_ARGUMENT, 127.0.0.1:7410)\n',
    );
    const machine = await cli(['namespace', 'list', '--json'], { client: failing(error) });
    expect(JSON.parse(machine.stderr)).toMatchObject({
      exitCode: 2,
      error: {
        code: 'INVALID_ARGUMENT',
        requestId: 'r-1',
        endpoint: '127.0.0.1:7410',
        violations: [{ field: 'a' }, { field: 'b' }],
      },
    });
  });

  it.each([
    [['in-doubt', 'settle', 'x', '--outcome', 'happened', '--reason', 'r'], 'admission_id', '<write>'],
    [['in-doubt', 'settle', 'x', '--outcome', 'happened', '--reason', 'r'], 'new_version', '--new-version'],
    [['keys', 'retire', 'x', '--reason', 'r'], 'key_id', '<key-id>'],
    [['keys', 'retire', 'x', '--reason', 'r'], 'reason', '--reason'],
    [['credential', 'revoke', '--run', 'x', '--reason', 'r'], 'run_id', '--run'],
    [['run', 'stop', 'x', '--reason', 'r'], 'run_id', '<run>'],
    [['run', 'create', '--purpose', 'p', '--allow', 'a=b'], 'authority_ends_at', '--until'],
    [['run', 'create', '--purpose', 'p', '--allow', 'a=b', '--for', '9d'], 'authority_ends_at', '--for'],
    [['run', 'create', '--purpose', 'p', '--allow', 'a=b'], 'allowed[0].pattern', 'allowed[0].pattern'],
    [['lease', 'acquire', '--run', 'x', '--resource', 'a'], 'entries[0].resource', '--resource (entries[0].resource)'],
    [['lease', 'acquire', '--run', 'x', '--resource', 'a'], 'namespace', '--namespace'],
  ])('%j names what the API calls %s as %s', async (args, field, shown) => {
    const violations = [{ field, description: 'is wrong' }];
    const error = new WritError('INVALID_ARGUMENT', 'words', { violations });
    const refuse = new Proxy({}, { get: () => async () => Promise.reject(error) });
    const client = { lease: refuse, run: refuse, credential: refuse };
    const human = await cli(args, { client });
    expect(human.stderr).toContain(`\n  ${shown}: is wrong\n`);
    const machine = await cli([...args, '--json'], { client });
    // Programs have both: the field is the one of every other client.
    expect(JSON.parse(machine.stderr).error.violations[0].field).toBe(field);
  });

  it.each(['UNAVAILABLE', 'DEADLINE_EXCEEDED'] as const)(
    '%s says which coordinator, and what to look at',
    async (code) => {
      const client = failing(new WritError(code, 'words', { requestId: 'r-1' }));
      const { stderr } = await cli(['namespace', 'list', '--endpoint', 'elsewhere:7'], { client });
      for (const part of ['elsewhere:7', 'writ doctor', 'npm start']) expect(stderr).toContain(part);
    },
  );

  it.each([
    ['self-signed certificate in certificate chain', 'WRIT_CA_FILE'],
    ['0A8C:error:0A000460:SSL routines:ssl3_read_bytes:tlsv1 alert no application protocol', 'HTTP port'],
  ])('%s is no coordinator that is missing', async (why, hint) => {
    const client = failing(new WritError('UNAVAILABLE', `the coordinator at x cannot be reached: ${why}`));
    const { stderr } = await cli(['namespace', 'list'], { client });
    expect(stderr).toContain(hint);
    expect(stderr).not.toContain('writ serve');
  });

  it('a coordinator that says why it cannot decide is not told as missing', async () => {
    const client = failing(new WritError('UNAVAILABLE', 'words', { reason: 'DATABASE_CHANGED' }));
    const { code, stderr } = await cli(['namespace', 'list'], { client });
    expect([code, stderr.includes('/readyz'), stderr.includes('writ serve')]).toEqual([5, true, false]);
  });

  it('a database URL of another form is a wrong setting, and told without its password', async () => {
    const env = { WRIT_DATABASE_URL: 'mysql://writ:s3cret@127.0.0.1:1/writ' };
    const { code, stderr } = await cli(['migrate'], { env });
    expect([code, stderr.includes('WRIT_DATABASE_URL'), stderr.includes('s3cret')]).toEqual([2, true, false]);
  });

  it('a migration that fails says where and as whom, without the password', async () => {
    const env = { WRIT_DATABASE_URL: 'postgres://writ_owner:s3cret@127.0.0.1:1/writ' };
    const { code, stderr } = await cli(['migrate'], { env });
    expect(code).toBe(5);
    expect(stderr).toContain('127.0.0.1:1/writ (as writ_owner)');
    expect(stderr).not.toContain('s3cret');
  });

  it('a variable that nothing reads is told by doctor', async () => {
    const env = { WRIT_DATABSE_URL: 'x', WRIT_GRPC_PORT: '0', WRIT_HTTP_PORT: '0', WRIT_DATA_DIR: directory };
    const { stdout } = await cli(['doctor'], { env });
    expect(stdout).toMatch(/^settings +warning +nothing reads WRIT_DATABSE_URL/m);
  });

  it('does not hide a bug', async () => {
    const { code, stderr } = await cli(['namespace', 'list'], { client: failing(new TypeError('oops')) });
    expect(code).toBe(1);
    expect(stderr).toContain('oops');
  });
});

describe('text', () => {
  it('is coloured for a terminal only, and not with NO_COLOR', async () => {
    const release = {
      lease: {
        releaseLease: async () =>
          ReleaseLeaseResponse.fromPartial({ outcome: ReleaseOutcome.RELEASE_OUTCOME_RELEASED }),
      },
    };
    expect((await cli(['lease', 'release', 'l', '--run', 'r'], { client: release })).stdout).toMatch(/^Released/);
    const coloured = async (options: object) =>
      (await cli(['namespace', 'list'], { client: namespaces, ...options })).stdout.includes('\u001b[');
    expect([
      await coloured({}),
      await coloured({ tty: true }),
      await coloured({ tty: true, env: { NO_COLOR: '1' } }),
    ]).toEqual([false, true, false]);
  });
});

describe('token', () => {
  it('shows the token once, and an entry with its hash only', async () => {
    const { code, json } = await cli(['token', '--name', 'svc:x', '--role', 'runner', '--role', 'target', '--json']);
    const { token, entry } = json() as { token: string; entry: { token_sha256: string } };
    expect(code).toBe(0);
    expect(token).toMatch(/^writ_/);
    expect(entry).toMatchObject({ name: 'svc:x', roles: ['runner', 'target'] });
    expect(entry.token_sha256).toMatch(/^[0-9a-f]{64}$/);
    expect(JSON.stringify(entry)).not.toContain(token);
  });

  it('makes entries that the coordinator takes', async () => {
    const { createCallerAuthenticator } = await import('../../src/auth/authenticator.js');
    const { readPrincipalsFile } = await import('../../src/auth/principals-file.js');
    const { token, entry } = (await cli(['token', '--name', 'svc:x', '--role', 'runner', '--json'])).json() as {
      token: string;
      entry: object;
    };
    const path = join(directory, 'tokens.json');
    await writeFile(path, JSON.stringify({ principals: [entry] }));
    await chmod(path, 0o600);
    expect(
      createCallerAuthenticator({ principals: (await readPrincipalsFile(path)).principals }).authenticate(
        `Bearer ${token}`,
      ),
    ).toMatchObject({
      name: 'svc:x',
    });
  });
});

it('closes its connection, also after an error', async () => {
  const close = vi.fn();
  await cli(['namespace', 'list'], { client: { ...namespaces, close } });
  await cli(['namespace', 'list'], { client: { ...failing(new Error('x')), close } });
  expect(close).toHaveBeenCalledTimes(2);
});
