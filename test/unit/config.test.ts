import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigError, type Environment, readConfig, unreadVariables } from '../../src/platform/config.js';
import { parseDuration } from '../../src/platform/durations.js';
import { isLoopback } from '../../src/platform/settings.js';

function problemsOf(env: Environment): readonly string[] {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('readConfig', () => {
  it('has a default for everything', () => {
    expect(readConfig({})).toEqual({
      grpcPort: 7410,
      httpPort: 7411,
      host: '127.0.0.1',
      tls: null,
      databaseUrl: null,
      databasesFile: null,
      databasePrepared: true,
      databaseConnections: 12,
      redisUrl: null,
      redisStreamLength: 100_000,
      dataDir: resolve('.writ'),
      tokensFile: null,
      routesFile: null,
      logLevel: 'info',
      failover: 'asynchronous',
      maxClockSkewMicros: 5_000_000,
      shutdownDeadlineMs: 10_000,
      checkpointKeyFile: null,
      checkpointEveryMs: 300_000,
      purgeAfterMicros: 86_400_000_000,
      textRetentionMicros: 365 * 86_400_000_000,
      issuer: null,
      keyEncryptionKey: null,
      keyEncryptionKeyFile: null,
      keyRotationMicros: 30 * 86_400_000_000,
      consoleUrl: null,
      consoleOidc: null,
      limits: {
        maxEntries: 256,
        maxLocks: 4096,
        maxWaitersPerRun: 64,
        maxWaiters: 10_000,
        maxLeasesPerRun: 1000,
        maxLeases: 1_000_000,
        maxOpenWritesPerRun: 256,
        maxOpenWrites: 10_000,
        maxMessageBytes: 4_194_304,
        maxCallsPerSecond: 0,
      },
    });
  });

  it('reads what is set, and takes an empty variable for an unset one', () => {
    const config = readConfig({
      WRIT_GRPC_PORT: '0',
      WRIT_HTTP_PORT: ' 0 ',
      WRIT_HOST: '',
      WRIT_DATABASE_URL: 'postgres://writ:secret@db/writ',
      WRIT_TOKENS_FILE: '/etc/writ/tokens.json',
      WRIT_DATABASE_PREPARED: 'off',
      WRIT_FAILOVER: 'synchronous',
      WRIT_MAX_CLOCK_SKEW: '250ms',
      WRIT_SHUTDOWN_DEADLINE: '2s',
      WRIT_MAX_CALLS_PER_SECOND: '50',
      PATH: '/bin',
    });
    expect(config).toMatchObject({
      grpcPort: 0,
      httpPort: 0,
      host: '127.0.0.1',
      databaseUrl: 'postgres://writ:secret@db/writ',
      tokensFile: '/etc/writ/tokens.json',
      databasePrepared: false,
      failover: 'synchronous',
      maxClockSkewMicros: 250_000,
      shutdownDeadlineMs: 2000,
    });
    expect(config.limits.maxCallsPerSecond).toBe(50);
  });

  it.each([
    ['WRIT_GRPC_PORT', '70000'],
    ['WRIT_GRPC_PORT', '7410x'],
    ['WRIT_HTTP_PORT', '-1'],
    ['WRIT_HOST', 'a b'],
    ['WRIT_ALLOW_INSECURE', 'yes'],
    ['WRIT_DATABASE_PREPARED', 'true'],
    ['WRIT_DATABASE_CONNECTIONS', '1'],
    ['WRIT_REDIS_STREAM_LENGTH', '10'],
    ['WRIT_LOG_LEVEL', 'loud'],
    ['WRIT_FAILOVER', 'sometimes'],
    ['WRIT_MAX_CLOCK_SKEW', '5'],
    ['WRIT_MAX_CLOCK_SKEW', '1h'],
    ['WRIT_SHUTDOWN_DEADLINE', '0s'],
    ['WRIT_CHECKPOINT_EVERY', '2d'],
    ['WRIT_PURGE_AFTER', '1h'],
    ['WRIT_TEXT_RETENTION', '1m'],
    ['WRIT_MAX_ENTRIES', '0'],
    ['WRIT_MAX_ENTRIES', '1e3'],
    ['WRIT_MAX_MESSAGE_BYTES', '12'],
    ['WRIT_CONSOLE_URL', 'writ.example'],
    ['WRIT_CONSOLE_URL', 'https://writ.example/console'],
    ['WRIT_CONSOLE_URL', 'https://user@writ.example'],
    ['WRIT_CONSOLE_OIDC_SCOPE', 'email'],
  ])('names %s when it is %s', (name, value) => {
    const problems = problemsOf({ [name]: value });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${name}: must be `));
    expect(problems[0]).toContain(JSON.stringify(value));
  });

  it('names all that is wrong at once', () => {
    expect(problemsOf({ WRIT_GRPC_PORT: 'x', WRIT_MAX_LOCKS: 'many' })).toHaveLength(2);
  });

  it('never repeats the database URL, which carries a password', () => {
    const problems = problemsOf({ WRIT_DATABASE_URL: 'mysql://writ:hunter2@db/writ', WRIT_TOKENS_FILE: 't' });
    expect(problems[0]).toMatch(/^WRIT_DATABASE_URL: must begin with postgres:/);
    expect(problems.join()).not.toContain('hunter2');
  });

  it.each(['http://u:hunter2@redis', 'redis://u:hunter2@re dis'])('never repeats the Redis URL either: %s', (url) => {
    const problems = problemsOf({ WRIT_REDIS_URL: url });
    expect(problems[0]).toMatch(/^WRIT_REDIS_URL: must b/);
    expect(problems.join()).not.toContain('hunter2');
  });

  it('stays on loopback unless told otherwise', () => {
    expect(problemsOf({ WRIT_HOST: '0.0.0.0' })[0]).toMatch(/^WRIT_HOST: .*WRIT_ALLOW_INSECURE=beyond-loopback/);
    expect(readConfig({ WRIT_HOST: '0.0.0.0', WRIT_ALLOW_INSECURE: 'beyond-loopback' }).host).toBe('0.0.0.0');
    expect(['localhost', '::1', '127.0.0.1', '127.8.9.1'].every(isLoopback)).toBe(true);
    expect(['0.0.0.0', '::', '10.0.0.1', '127.example.org', 'localhost.example.org'].some(isLoopback)).toBe(false);
  });

  it('goes beyond loopback with TLS, and needs all of its files', () => {
    const files = { WRIT_TLS_CERT_FILE: '/tls/cert.pem', WRIT_TLS_KEY_FILE: '/tls/key.pem' };
    expect(readConfig({ WRIT_HOST: '0.0.0.0', ...files }).tls).toEqual({
      certFile: '/tls/cert.pem',
      keyFile: '/tls/key.pem',
      clientCaFile: null,
      clientCerts: 'optional',
    });
    expect(problemsOf({ WRIT_TLS_CERT_FILE: 'c' })[0]).toMatch(/^WRIT_TLS_KEY_FILE: required/);
    expect(problemsOf({ WRIT_TLS_KEY_FILE: 'k' })[0]).toMatch(/^WRIT_TLS_CERT_FILE: required/);
    expect(problemsOf({ WRIT_TLS_CLIENT_CA_FILE: 'c' })[0]).toMatch(/^WRIT_TLS_CERT_FILE: required/);
    expect(problemsOf({ ...files, WRIT_TLS_CLIENT_CERTS: 'required' })[0]).toMatch(/^WRIT_TLS_CLIENT_CA_FILE: req/);
    expect(problemsOf({ WRIT_TLS_CLIENT_CERTS: 'yes' })[0]).toMatch(/^WRIT_TLS_CLIENT_CERTS: must be/);
  });

  it('takes a provider for the console whose answers cannot be forged on the way', () => {
    const client = { WRIT_CONSOLE_OIDC_CLIENT_ID: 'writ-console' };
    const config = readConfig({
      ...client,
      WRIT_CONSOLE_URL: 'https://writ.example/',
      WRIT_CONSOLE_OIDC_ISSUER: 'https://id.example/realms/ops',
      WRIT_CONSOLE_OIDC_CLIENT_SECRET_FILE: '/etc/writ/secret',
      WRIT_CONSOLE_OIDC_SCOPE: 'openid email',
    });
    expect(config.consoleUrl).toBe('https://writ.example');
    expect(config.consoleOidc).toEqual({
      issuer: 'https://id.example/realms/ops',
      clientId: 'writ-console',
      clientSecretFile: '/etc/writ/secret',
      scope: 'openid email',
    });
    expect(readConfig({ ...client, WRIT_CONSOLE_OIDC_ISSUER: 'http://127.0.0.1:1' }).consoleOidc?.scope).toBe('openid');
    for (const issuer of ['http://id.example', 'https://id.example?tenant=1', 'https://u@id.example', 'id.example'])
      expect(problemsOf({ ...client, WRIT_CONSOLE_OIDC_ISSUER: issuer })[0]).toMatch(
        /^WRIT_CONSOLE_OIDC_ISSUER: must be/,
      );
    expect(problemsOf(client)[0]).toMatch(/^WRIT_CONSOLE_OIDC_ISSUER: required/);
    expect(problemsOf({ WRIT_CONSOLE_OIDC_ISSUER: 'https://id.example' })[0]).toMatch(
      /^WRIT_CONSOLE_OIDC_CLIENT_ID: required/,
    );
  });

  it('refuses contradictions', () => {
    expect(problemsOf({ WRIT_DATABASE_URL: 'postgres://db/writ' })).toEqual([
      expect.stringMatching(/^WRIT_TOKENS_FILE: required/),
    ]);
    expect(problemsOf({ WRIT_GRPC_PORT: '8000', WRIT_HTTP_PORT: '8000' })).toEqual([
      expect.stringMatching(/^WRIT_HTTP_PORT: /),
    ]);
  });
});

describe('unreadVariables', () => {
  it('finds the misspelt, and leaves alone what others are told by', () => {
    const others = { WRIT_TOKEN: 'x', WRIT_LEASE_ID: 'x', WRIT_SERVICE_HOST: 'x', WRIT_PORT_7410_TCP: 'x', PATH: 'x' };
    expect(unreadVariables({ WRIT_DATABASE_URL: 'x', ...others })).toEqual([]);
    expect(unreadVariables({ WRIT_DATABSE_URL: 'x', WRIT_FAILOVR: 'x', ...others })).toEqual([
      'WRIT_DATABSE_URL',
      'WRIT_FAILOVR',
    ]);
  });
});

describe('parseDuration', () => {
  it('needs a unit and is exact', () => {
    expect(['1ms', '5s', '2m', '24h', '7d', '1h30m'].map(parseDuration)).toEqual([
      1000, 5e6, 120e6, 86_400e6, 604_800e6, 5_400e6,
    ]);
    const none = ['5', '5 s', '-5s', '1.5s', 's', '1us', '5s3', '', '99999999999d'];
    expect(none.map(parseDuration)).toEqual(none.map(() => null));
  });
});
