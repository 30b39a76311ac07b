import { resolve } from 'node:path';
import { z } from 'zod';
import {
  databaseUrl,
  duration,
  integer,
  isLoopback,
  issuer,
  keyEncryptionKey,
  oneOf,
  origin,
  port,
  redisUrl,
  safeUrl,
  setting,
} from './settings.js';

/**
 * The coordinator's settings, all of them from `WRIT_*` environment variables; nothing else reads the
 * environment. An empty variable counts as unset. Durations are written with their unit: `500ms`,
 * `5s`, `2m`, `24h`, `7d`.
 */
export interface Config {
  /** WRIT_GRPC_PORT, 7410; 0 picks a free one. */
  readonly grpcPort: number;
  /** WRIT_HTTP_PORT, 7411; 0 picks a free one. */
  readonly httpPort: number;
  /** WRIT_HOST, 127.0.0.1; beyond loopback only with TLS, or with WRIT_ALLOW_INSECURE=beyond-loopback. */
  readonly host: string;
  /** WRIT_TLS_CERT_FILE and the others; null: plain text. */
  readonly tls: TlsConfig | null;
  /** WRIT_DATABASE_URL; null: the embedded Postgres. Carries a password. */
  readonly databaseUrl: string | null;
  /** WRIT_DATABASES_FILE: databases beside this one that namespaces can live in; null: none. Absolute. */
  readonly databasesFile: string | null;
  /** WRIT_DATABASE_PREPARED, on; `off` for poolers that cannot keep prepared statements apart. */
  readonly databasePrepared: boolean;
  /** WRIT_DATABASE_CONNECTIONS, 12: at most this many at once. */
  readonly databaseConnections: number;
  /** WRIT_REDIS_URL: carries wake-ups and events; null: no Redis. Carries a password. */
  readonly redisUrl: string | null;
  /** WRIT_REDIS_STREAM_LENGTH, 100,000: about how many events the stream of a namespace keeps. */
  readonly redisStreamLength: number;
  /** WRIT_DATA_DIR, ./.writ; absolute. */
  readonly dataDir: string;
  /** WRIT_TOKENS_FILE; required with WRIT_DATABASE_URL, added to the development tokens without it. */
  readonly tokensFile: string | null;
  /** WRIT_ROUTES_FILE: which requests make which writes, for gateways; null: no gateway has routes. Absolute. */
  readonly routesFile: string | null;
  /** WRIT_LOG_LEVEL, info. */
  readonly logLevel: LogLevel;
  /** WRIT_FAILOVER, asynchronous: whether a fail-over of the database can lose acknowledged history. */
  readonly failover: 'asynchronous' | 'synchronous';
  /** WRIT_MAX_CLOCK_SKEW, 5s: how far the clocks of two database servers may be apart. */
  readonly maxClockSkewMicros: number;
  /** WRIT_SHUTDOWN_DEADLINE, 10s: the process ends within it, whatever is still going on (F26). */
  readonly shutdownDeadlineMs: number;
  /** WRIT_CHECKPOINT_KEY_FILE: the private key that signs checkpoints; null: the services' default. */
  readonly checkpointKeyFile: string | null;
  /** WRIT_CHECKPOINT_EVERY, 5m: how often a signed checkpoint of each log that has moved is written to the replica's own log (A2), and replicas compare their states. */
  readonly checkpointEveryMs: number;
  /** WRIT_PURGE_AFTER, 24h: how long ended runs, their leases and keys stay; no shorter, since the API promises it (P6). */
  readonly purgeAfterMicros: number;
  /** WRIT_TEXT_RETENTION, 365d: how long the log keeps free text (purposes, reasons); then only its salted hash stays (A3). */
  readonly textRetentionMicros: number;
  /** WRIT_ISSUER: `iss` of credentials; null: the address of the HTTP port. */
  readonly issuer: string | null;
  /** WRIT_KEY_ENCRYPTION_KEY: encrypts the keys that sign credentials. A secret. */
  readonly keyEncryptionKey: string | null;
  /** WRIT_KEY_ENCRYPTION_KEY_FILE: where it is, in place of the variable. */
  readonly keyEncryptionKeyFile: string | null;
  /** WRIT_KEY_ROTATION, 30d: how long a key signs. */
  readonly keyRotationMicros: number;
  /** WRIT_CONSOLE_URL: where browsers find the console; null: at the address that they send to. */
  readonly consoleUrl: string | null;
  /** WRIT_CONSOLE_OIDC_ISSUER and the others; null: people sign in by tokens only. */
  readonly consoleOidc: ConsoleOidcConfig | null;
  readonly limits: Limits;
}

/** An OpenID provider at which people sign in to the console. */
export interface ConsoleOidcConfig {
  /** WRIT_CONSOLE_OIDC_ISSUER: an https URL, or http on this machine. */
  readonly issuer: string;
  /** WRIT_CONSOLE_OIDC_CLIENT_ID. */
  readonly clientId: string;
  /** WRIT_CONSOLE_OIDC_CLIENT_SECRET_FILE, absolute; null: a public client, which PKCE alone protects. */
  readonly clientSecretFile: string | null;
  /** WRIT_CONSOLE_OIDC_SCOPE, openid. */
  readonly scope: string;
}

/** What both ports need to speak TLS, 1.2 or later; all files PEM, absolute. */
export interface TlsConfig {
  /** WRIT_TLS_CERT_FILE: the server's certificate, then those between it and its authority. */
  readonly certFile: string;
  /** WRIT_TLS_KEY_FILE: its private key. */
  readonly keyFile: string;
  /** WRIT_TLS_CLIENT_CA_FILE: the authorities of client certificates; null: none are asked for. */
  readonly clientCaFile: string | null;
  /** WRIT_TLS_CLIENT_CERTS, optional: `required` refuses connections without one. */
  readonly clientCerts: 'optional' | 'required';
}

/** Bounds that requests meet; each is named in the refusal or fault it causes. */
export interface Limits {
  /** WRIT_MAX_ENTRIES, 256: entries of one write set. */
  readonly maxEntries: number;
  /** WRIT_MAX_LOCKS, 4096: locks of one write set after expansion. */
  readonly maxLocks: number;
  /** WRIT_MAX_WAITERS_PER_RUN, 64. */
  readonly maxWaitersPerRun: number;
  /** WRIT_MAX_WAITERS, 10000: of one namespace. */
  readonly maxWaiters: number;
  /** WRIT_MAX_LEASES_PER_RUN, 1000: live ones. */
  readonly maxLeasesPerRun: number;
  /** WRIT_MAX_LEASES, 1000000: live ones of one namespace. */
  readonly maxLeases: number;
  /** WRIT_MAX_OPEN_WRITES_PER_RUN, 256: tracked ones whose outcome is not known. */
  readonly maxOpenWritesPerRun: number;
  /** WRIT_MAX_OPEN_WRITES, 10000: of one namespace. */
  readonly maxOpenWrites: number;
  /** WRIT_MAX_MESSAGE_BYTES, 4194304: one request. */
  readonly maxMessageBytes: number;
  /** WRIT_MAX_CALLS_PER_SECOND, 0: of one principal on one replica; 0: unlimited. */
  readonly maxCallsPerSecond: number;
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** The environment asks for something that cannot be; one line per variable. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}

/** As much of `process.env` as is read here. */
export type Environment = Readonly<Record<string, string | undefined>>;

const schema = z.object({
  WRIT_GRPC_PORT: port(7410),
  WRIT_HTTP_PORT: port(7411),
  WRIT_HOST: setting('127.0.0.1', 'a host name or an IP address', (text) =>
    /^[\w.:%-]+$/.test(text) ? text : undefined,
  ),
  WRIT_ALLOW_INSECURE: oneOf('no', ['no', 'beyond-loopback']),
  WRIT_TLS_CERT_FILE: z.string().optional(),
  WRIT_TLS_KEY_FILE: z.string().optional(),
  WRIT_TLS_CLIENT_CA_FILE: z.string().optional(),
  WRIT_TLS_CLIENT_CERTS: oneOf('optional', ['optional', 'required']),
  WRIT_DATABASE_URL: databaseUrl,
  WRIT_DATABASES_FILE: z.string().optional(),
  WRIT_DATABASE_PREPARED: oneOf('on', ['on', 'off']),
  WRIT_DATABASE_CONNECTIONS: integer(12, 2, 500),
  WRIT_REDIS_URL: redisUrl,
  WRIT_REDIS_STREAM_LENGTH: integer(100_000, 100, 100_000_000),
  WRIT_DATA_DIR: z.string().default('./.writ'),
  WRIT_TOKENS_FILE: z.string().optional(),
  WRIT_ROUTES_FILE: z.string().optional(),
  WRIT_LOG_LEVEL: oneOf('info', LOG_LEVELS),
  WRIT_FAILOVER: oneOf('asynchronous', ['asynchronous', 'synchronous']),
  WRIT_MAX_CLOCK_SKEW: duration('5s', '0s', '5m'),
  WRIT_SHUTDOWN_DEADLINE: duration('10s', '100ms', '1h'),
  WRIT_CHECKPOINT_KEY_FILE: z.string().optional(),
  WRIT_CHECKPOINT_EVERY: duration('5m', '1s', '24h'),
  WRIT_PURGE_AFTER: duration('24h', '24h', '3650d'),
  WRIT_ISSUER: issuer,
  WRIT_KEY_ENCRYPTION_KEY: keyEncryptionKey,
  WRIT_KEY_ENCRYPTION_KEY_FILE: z.string().optional(),
  WRIT_TEXT_RETENTION: duration('365d', '1h', '36500d'),
  WRIT_KEY_ROTATION: duration('30d', '1h', '3650d'),
  WRIT_CONSOLE_URL: origin,
  WRIT_CONSOLE_OIDC_ISSUER: safeUrl,
  WRIT_CONSOLE_OIDC_CLIENT_ID: z.string().max(1_024).optional(),
  WRIT_CONSOLE_OIDC_CLIENT_SECRET_FILE: z.string().optional(),
  WRIT_CONSOLE_OIDC_SCOPE: setting('openid', 'scopes separated by spaces, with openid', (text) =>
    /^[\x21-\x7e]+( [\x21-\x7e]+)*$/.test(text) && text.split(' ').includes('openid') ? text : undefined,
  ),
  WRIT_MAX_ENTRIES: integer(256, 1, 10_000),
  WRIT_MAX_LOCKS: integer(4096, 1, 1_000_000),
  WRIT_MAX_WAITERS_PER_RUN: integer(64, 0, 100_000),
  WRIT_MAX_WAITERS: integer(10_000, 0, 1_000_000),
  WRIT_MAX_LEASES_PER_RUN: integer(1000, 1, 10_000_000),
  WRIT_MAX_LEASES: integer(1_000_000, 1, 100_000_000),
  WRIT_MAX_OPEN_WRITES_PER_RUN: integer(256, 1, 10_000),
  WRIT_MAX_OPEN_WRITES: integer(10_000, 1, 100_000),
  WRIT_MAX_MESSAGE_BYTES: integer(4 << 20, 1 << 10, 256 << 20),
  WRIT_MAX_CALLS_PER_SECOND: integer(0, 0, 1_000_000),
});

type Variables = z.infer<typeof schema>;

/**
 * Reads the settings, or throws a ConfigError that names every variable that is wrong.
 *
 * @example
 * const config = readConfig();
 */
export function readConfig(env: Environment = process.env): Config {
  const given = Object.fromEntries(
    Object.keys(schema.shape).flatMap((name) => {
      const text = env[name]?.trim();
      return text === undefined || text === '' ? [] : [[name, text]];
    }),
  );
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    throw new ConfigError(parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`));
  }
  const problems = contradictions(parsed.data);
  if (problems.length > 0) throw new ConfigError(problems);
  return toConfig(parsed.data);
}

/** What the command line, and the commands that it runs, read or are given. */
const OF_THE_COMMAND_LINE = [
  'ENDPOINT',
  'TOKEN',
  'TOKEN_FILE',
  'NAMESPACE',
  'CA_FILE',
  'CLIENT_CERT_FILE',
  'CLIENT_KEY_FILE',
  'RUN_ID',
  'LEASE_ID',
  'FENCING_TOKEN',
  'ENTRIES_FILE',
  'CREDENTIAL_FILE',
  'CREDENTIAL_FILES',
];

/** What Kubernetes gives every pod beside a service that is called `writ` or `writ-…`; and what the tests are told by. */
const NOT_MEANT_FOR_US = /^WRIT_(SERVICE|PORT|TEST)(_|$)|_SERVICE_(HOST|PORT)|_PORT_\d/;

/**
 * Variables called as ours are that nothing reads. Misspelt ones, most likely: what was meant has its default then, and
 * without WRIT_DATABASE_URL that is another database.
 */
export function unreadVariables(env: Environment = process.env): string[] {
  const read = new Set([...Object.keys(schema.shape), ...OF_THE_COMMAND_LINE.map((name) => `WRIT_${name}`)]);
  return Object.keys(env)
    .filter((name) => name.startsWith('WRIT_') && !read.has(name) && !NOT_MEANT_FOR_US.test(name))
    .sort();
}

/** What is wrong with settings that are each right. */
function contradictions(v: Variables): string[] {
  const problems: string[] = [];
  const tls = v.WRIT_TLS_CERT_FILE !== undefined;
  if (!tls && !isLoopback(v.WRIT_HOST) && v.WRIT_ALLOW_INSECURE !== 'beyond-loopback') {
    problems.push(
      `WRIT_HOST: ${v.WRIT_HOST} is reachable from other machines, and tokens would travel unencrypted. ` +
        'Set WRIT_TLS_CERT_FILE and WRIT_TLS_KEY_FILE, keep a loopback address, or set ' +
        'WRIT_ALLOW_INSECURE=beyond-loopback where the network protects them.',
    );
  }
  if (tls && v.WRIT_TLS_KEY_FILE === undefined) problems.push('WRIT_TLS_KEY_FILE: required with WRIT_TLS_CERT_FILE');
  if (!tls && v.WRIT_TLS_KEY_FILE !== undefined) problems.push('WRIT_TLS_CERT_FILE: required with WRIT_TLS_KEY_FILE');
  if (!tls && v.WRIT_TLS_CLIENT_CA_FILE !== undefined) {
    problems.push('WRIT_TLS_CERT_FILE: required with WRIT_TLS_CLIENT_CA_FILE; without TLS nobody shows a certificate');
  }
  if (v.WRIT_TLS_CLIENT_CERTS === 'required' && v.WRIT_TLS_CLIENT_CA_FILE === undefined) {
    problems.push('WRIT_TLS_CLIENT_CA_FILE: required with WRIT_TLS_CLIENT_CERTS=required');
  }
  if (v.WRIT_GRPC_PORT !== 0 && v.WRIT_GRPC_PORT === v.WRIT_HTTP_PORT) {
    problems.push(`WRIT_HTTP_PORT: ${v.WRIT_HTTP_PORT} is WRIT_GRPC_PORT too; each needs its own`);
  }
  if (v.WRIT_DATABASE_URL !== undefined && v.WRIT_TOKENS_FILE === undefined) {
    problems.push('WRIT_TOKENS_FILE: required with WRIT_DATABASE_URL; `writ token` makes an entry for it');
  }
  const withKey = v.WRIT_KEY_ENCRYPTION_KEY !== undefined || v.WRIT_KEY_ENCRYPTION_KEY_FILE !== undefined;
  if (v.WRIT_KEY_ENCRYPTION_KEY !== undefined && v.WRIT_KEY_ENCRYPTION_KEY_FILE !== undefined)
    problems.push('WRIT_KEY_ENCRYPTION_KEY_FILE: WRIT_KEY_ENCRYPTION_KEY is set too; give one of them');
  if (v.WRIT_DATABASE_URL !== undefined && withKey && v.WRIT_ISSUER === null)
    problems.push(
      'WRIT_ISSUER: required with WRIT_DATABASE_URL and a key-encryption key: all replicas must issue credentials under one name',
    );
  if (v.WRIT_CONSOLE_OIDC_ISSUER !== null && v.WRIT_CONSOLE_OIDC_CLIENT_ID === undefined)
    problems.push('WRIT_CONSOLE_OIDC_CLIENT_ID: required with WRIT_CONSOLE_OIDC_ISSUER');
  if (
    v.WRIT_CONSOLE_OIDC_ISSUER === null &&
    (v.WRIT_CONSOLE_OIDC_CLIENT_ID ?? v.WRIT_CONSOLE_OIDC_CLIENT_SECRET_FILE) !== undefined
  )
    problems.push('WRIT_CONSOLE_OIDC_ISSUER: required with the other WRIT_CONSOLE_OIDC_ variables');
  return problems;
}

function toTls(v: Variables): TlsConfig | null {
  const { WRIT_TLS_CERT_FILE: cert, WRIT_TLS_KEY_FILE: key, WRIT_TLS_CLIENT_CA_FILE: ca } = v;
  if (cert === undefined || key === undefined) return null;
  return {
    certFile: resolve(cert),
    keyFile: resolve(key),
    clientCaFile: ca === undefined ? null : resolve(ca),
    clientCerts: v.WRIT_TLS_CLIENT_CERTS,
  };
}

function toConsoleOidc(v: Variables): ConsoleOidcConfig | null {
  const { WRIT_CONSOLE_OIDC_ISSUER: issuer, WRIT_CONSOLE_OIDC_CLIENT_ID: clientId } = v;
  if (issuer === null || clientId === undefined) return null;
  const file = v.WRIT_CONSOLE_OIDC_CLIENT_SECRET_FILE;
  return {
    issuer,
    clientId,
    clientSecretFile: file === undefined ? null : resolve(file),
    scope: v.WRIT_CONSOLE_OIDC_SCOPE,
  };
}

function toConfig(v: Variables): Config {
  return {
    grpcPort: v.WRIT_GRPC_PORT,
    httpPort: v.WRIT_HTTP_PORT,
    host: v.WRIT_HOST,
    tls: toTls(v),
    databaseUrl: v.WRIT_DATABASE_URL ?? null,
    databasesFile: v.WRIT_DATABASES_FILE === undefined ? null : resolve(v.WRIT_DATABASES_FILE),
    databasePrepared: v.WRIT_DATABASE_PREPARED === 'on',
    databaseConnections: v.WRIT_DATABASE_CONNECTIONS,
    redisUrl: v.WRIT_REDIS_URL ?? null,
    redisStreamLength: v.WRIT_REDIS_STREAM_LENGTH,
    dataDir: resolve(v.WRIT_DATA_DIR),
    tokensFile: v.WRIT_TOKENS_FILE === undefined ? null : resolve(v.WRIT_TOKENS_FILE),
    routesFile: v.WRIT_ROUTES_FILE === undefined ? null : resolve(v.WRIT_ROUTES_FILE),
    logLevel: v.WRIT_LOG_LEVEL,
    failover: v.WRIT_FAILOVER,
    maxClockSkewMicros: v.WRIT_MAX_CLOCK_SKEW,
    shutdownDeadlineMs: v.WRIT_SHUTDOWN_DEADLINE / 1000,
    checkpointKeyFile: v.WRIT_CHECKPOINT_KEY_FILE === undefined ? null : resolve(v.WRIT_CHECKPOINT_KEY_FILE),
    checkpointEveryMs: v.WRIT_CHECKPOINT_EVERY / 1000,
    purgeAfterMicros: v.WRIT_PURGE_AFTER,
    textRetentionMicros: v.WRIT_TEXT_RETENTION,
    issuer: v.WRIT_ISSUER,
    keyEncryptionKey: v.WRIT_KEY_ENCRYPTION_KEY ?? null,
    keyEncryptionKeyFile: v.WRIT_KEY_ENCRYPTION_KEY_FILE === undefined ? null : resolve(v.WRIT_KEY_ENCRYPTION_KEY_FILE),
    keyRotationMicros: v.WRIT_KEY_ROTATION,
    consoleUrl: v.WRIT_CONSOLE_URL,
    consoleOidc: toConsoleOidc(v),
    limits: {
      maxEntries: v.WRIT_MAX_ENTRIES,
      maxLocks: v.WRIT_MAX_LOCKS,
      maxWaitersPerRun: v.WRIT_MAX_WAITERS_PER_RUN,
      maxWaiters: v.WRIT_MAX_WAITERS,
      maxLeasesPerRun: v.WRIT_MAX_LEASES_PER_RUN,
      maxLeases: v.WRIT_MAX_LEASES,
      maxOpenWritesPerRun: v.WRIT_MAX_OPEN_WRITES_PER_RUN,
      maxOpenWrites: v.WRIT_MAX_OPEN_WRITES,
      maxMessageBytes: v.WRIT_MAX_MESSAGE_BYTES,
      maxCallsPerSecond: v.WRIT_MAX_CALLS_PER_SECOND,
    },
  };
}
