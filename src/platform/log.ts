import { type DestinationStream, type Logger as PinoLogger, pino, stdSerializers } from 'pino';
import type { LogLevel } from './config.js';

/** Structured log, one JSON object a line on stderr. Keys are in snake case: `request_id`, `run_id`, `lease_id`. */
export type Logger = PinoLogger;

/** Hidden wherever they stand at the top of a line or one level down. */
const SECRET_KEYS = [
  'authorization',
  'cookie',
  'password',
  'secret',
  'token',
  'tokens',
  'credential',
  'private_key',
  'database_url',
  'databaseUrl',
  'connectionString',
];

/** Beyond this a reader of stderr that stands still costs log lines, not memory. */
const MAX_BUFFERED_BYTES = 4 << 20;

/** A tenth of a second each: altogether, and while nothing is read. */
const TRIES_AT_EXIT = 30;
const IDLE_TRIES_AT_EXIT = 10;

const URL_PASSWORD = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s:@/]*):[^\s@/]*@/gi;
/** As libpq also takes it. */
const PASSWORD_PARAMETER = /([?&]password=)[^\s&]*/gi;

/** Makes the process's logger; `destination` is for tests. */
export function createLogger(level: LogLevel, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      base: { service: 'writ', pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_KEYS.flatMap((key) => [key, `*.${key}`]), censor: '[hidden]' },
      serializers: { err: serializeError, error: serializeError, lease_id: shorten, leaseId: shorten },
    },
    destination ?? standardError(),
  );
}

let stderr: DestinationStream | undefined;

/** One for all loggers of the process. */
function standardError(): DestinationStream {
  stderr ??= openStandardError();
  return stderr;
}

/**
 * Not synchronously: a reader of stderr that stands still must not stop the coordinator. Nor may it keep it from ending
 * (F26): what is still to be written then is given a second in which nothing is read, and three in all.
 */
function openStandardError(): DestinationStream {
  let atExit: { triesLeft: number; idleLeft: number; leftBytes: number } | null = null;
  const retryEAGAIN = (_: unknown, ofThis: number, ofOthers: number): boolean => {
    if (atExit === null) return true;
    const leftBytes = ofThis + ofOthers;
    const idleLeft = leftBytes < atExit.leftBytes ? IDLE_TRIES_AT_EXIT : atExit.idleLeft - 1;
    atExit = { triesLeft: atExit.triesLeft - 1, idleLeft, leftBytes };
    return atExit.triesLeft > 0 && idleLeft > 0;
  };
  const stream = pino.destination({ fd: 2, sync: false, maxLength: MAX_BUFFERED_BYTES, retryEAGAIN });
  process.prependOnceListener('exit', () => {
    atExit = { triesLeft: TRIES_AT_EXIT, idleLeft: IDLE_TRIES_AT_EXIT, leftBytes: Number.POSITIVE_INFINITY };
    try {
      stream.flushSync();
    } catch {
      // The lines are lost, as they are beyond what is buffered.
    }
    stream.destroy();
  });
  return stream;
}

/** The part of a lease id that may be logged: whoever has the whole may present the lease. */
export function shortLeaseId(leaseId: string): string {
  return leaseId.slice(0, 8);
}

function shorten(value: unknown): unknown {
  return typeof value === 'string' ? shortLeaseId(value) : value;
}

/** Type, message, stack and causes; a URL in them loses its password. */
function serializeError(value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const { type, message, stack } = stdSerializers.err(value);
  const code = (value as NodeJS.ErrnoException).code;
  return {
    type,
    message: hideUrlPasswords(message),
    stack: hideUrlPasswords(stack),
    ...(typeof code === 'string' ? { code } : {}),
  };
}

/** The same text with the passwords of its URLs left out. */
export function hideUrlPasswords(text: string): string {
  return text.replace(URL_PASSWORD, '$1:[hidden]@').replace(PASSWORD_PARAMETER, '$1[hidden]');
}
