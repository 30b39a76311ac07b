import pg from 'pg';
import { StoreError } from '../store.js';
import { asStoreError } from './errors.js';
import { type SqlValue, type Statement, valuesFor } from './statement.js';

/** How the store reaches its database. */
export interface ConnectionOptions {
  readonly url: string;
  /**
   * Named prepared statements; default true. False behind a transaction-mode pooler, where two statements of one client
   * may meet different servers.
   */
  readonly prepared: boolean;
  /** Over both pools. */
  readonly maxConnections: number;
  /** How long a new or a free connection may take. */
  readonly connectTimeoutMs: number;
  /** How long the answer to a short statement may take before the connection is given up. */
  readonly answerTimeoutMs: number;
  readonly log: (line: string) => void;
}

/** A connection that is ours until the callback returns. */
export interface Session {
  /** Rows of one statement. */
  query<R extends pg.QueryResultRow>(sql: Statement, values: Readonly<Record<string, SqlValue>>): Promise<R[]>;
  /** Statements without parameters; the command tag of the last one. */
  command(sql: string): Promise<string>;
  /** The first WARNING since the session began; a commit that was not replicated as asked says so in one. */
  warning(): string | null;
}

/**
 * Two pools of one database. Appends, gates and heartbeats are short, and everything waits for them; snapshots, lists
 * and purges may be long. Neither may use up the connections of the other.
 */
export interface Connections {
  readonly short: Lane;
  readonly long: Lane;
  close(): Promise<void>;
}

/** One pool. */
export interface Lane {
  /** Runs in one session. Errors are StoreErrors, except in `write`, whose caller tells a lost race from a failure. */
  read<T>(work: (session: Session) => Promise<T>): Promise<T>;
  write<T>(work: (session: Session) => Promise<T>): Promise<T>;
}

/** At most this many for work that may be long. */
const MAX_LONG = 4;

export function connect(options: ConnectionOptions): Connections {
  const long = Math.max(1, Math.min(MAX_LONG, Math.floor(options.maxConnections / 3)));
  const short = Math.max(1, options.maxConnections - long);
  const pools = [
    makePool(options, short, options.answerTimeoutMs),
    // The server's own statement_timeout, see migrate.ts.
    makePool(options, long, Math.max(options.answerTimeoutMs, 60_000)),
  ] as const;
  let closed: Promise<void> | undefined;
  return {
    short: makeLane(pools[0], options.prepared),
    long: makeLane(pools[1], options.prepared),
    close() {
      closed ??= Promise.all(pools.map((pool) => pool.end())).then(() => undefined);
      return closed;
    },
  };
}

/**
 * Settings of every connection of Writ. Nothing here goes into the startup packet but user, database and
 * application_name: a pooler would refuse it. Timeouts of the server are settings of the role, made by `writ migrate`.
 */
export function clientConfig(url: string): pg.ClientConfig {
  if (!URL.canParse(url) && !url.startsWith('/') && !url.startsWith('socket:')) {
    // The text of the URL stays out of it: it holds a password.
    throw new StoreError(
      'unavailable',
      'the database URL cannot be parsed: expected postgres://user:password@host/name',
    );
  }
  return { connectionString: url, types: { getTypeParser }, application_name: 'writ', keepAlive: true };
}

function makePool(options: ConnectionOptions, max: number, answerTimeoutMs: number): pg.Pool {
  const pool = new pg.Pool({
    ...clientConfig(options.url),
    max,
    connectionTimeoutMillis: options.connectTimeoutMs,
    query_timeout: answerTimeoutMs,
    idleTimeoutMillis: 60_000,
  });
  // An idle connection died, say with its server: the pool has removed it already, the next one is made anew.
  pool.on('error', (error) => options.log(`an idle database connection ended: ${error.message}`));
  // For its whole life, since the pool's own listener is gone before a caller could add one: a server that ends in the
  // same packet as its ReadyForQuery would end this process too. The next query on the connection reports it.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

function makeLane(pool: pg.Pool, prepared: boolean): Lane {
  async function inSession<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const client = await pool.connect().catch(asStoreError('connect'));
    let warning: string | null = null;
    const onNotice = (notice: { readonly code?: string | undefined; readonly message?: string | undefined }): void => {
      // By code, since the severity is translated: 01xxx, or 57P01 from a backend that is told to end.
      if (/^(01|57P)/.test(notice.code ?? '')) warning ??= notice.message ?? 'a warning without words';
    };
    client.on('notice', onNotice);
    let failed = true;
    try {
      const result = await work(sessionOf(client, prepared, () => warning));
      failed = false;
      return result;
    } finally {
      client.off('notice', onNotice);
      // A connection whose last answer was an error is given up only if it is not plainly usable: after an ordinary
      // error outside a transaction the server waits for the next statement.
      client.release(failed && !isUsable(client));
    }
  }
  return {
    write: inSession,
    read: (work) => inSession(work).catch(asStoreError('read')),
  };
}

function sessionOf(client: pg.PoolClient, prepared: boolean, warning: () => string | null): Session {
  return {
    warning,
    async query<R extends pg.QueryResultRow>(sql: Statement, values: Readonly<Record<string, SqlValue>>): Promise<R[]> {
      const config: pg.QueryConfig = { text: sql.text, values: valuesFor(sql, values) };
      if (prepared) config.name = sql.name;
      return (await client.query<R>(config)).rows;
    },
    async command(sql) {
      const result: unknown = await client.query(sql);
      // Several statements give several results, which the driver's types do not say.
      const last = (Array.isArray(result) ? result.at(-1) : result) as pg.QueryResult;
      return last.command;
    },
  };
}

/** The driver knows the transaction status of the last ReadyForQuery: `I` is idle, outside any transaction. */
function isUsable(client: pg.PoolClient): boolean {
  const { readyForQuery, _queryable } = client as unknown as { readyForQuery?: boolean; _queryable?: boolean };
  return _queryable === true && readyForQuery === true && client.getTransactionStatus() === 'I';
}

// ------------------------------------------------------------------------------------------------------ data types

const BIGINT = 20;
const BYTEA = 17;
const OID = 26;
const JSON_TEXT = 114;

/** Local to our pools: other users of the driver in this process keep its defaults. */
function getTypeParser(oid: number, format?: 'text' | 'binary'): (text: string) => unknown {
  switch (oid) {
    case BIGINT:
    case OID:
      return exactNumber;
    case BYTEA:
      return withoutPrefix;
    case JSON_TEXT:
      return identity;
    default:
      return (pg.types.getTypeParser as (oid: number, format?: string) => (text: string) => unknown)(oid, format);
  }
}

/** Revisions, tokens and microseconds stay below 2^53 until the year 2255; anything else must not pass silently. */
function exactNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is not exact as a number`);
  return value;
}

/** Hashes are hexadecimal digits here; Postgres writes `\x` before them. */
const withoutPrefix = (text: string): string => text.slice(2);
const identity = (text: string): string => text;
