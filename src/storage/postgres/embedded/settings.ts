/** What the server is started with. */
export interface ServerOptions {
  readonly settings: Readonly<Record<string, string>>;
  /** Undefined: a free one. */
  readonly port: number | undefined;
}

const DEFAULT_SETTINGS: Readonly<Record<string, string>> = {
  max_connections: '100',
  shared_buffers: '128MB',
  max_wal_size: '1GB',
  // Segments are used again, not made anew: to fill one of 16 MB with zeros and sync it holds an append up for 50 ms.
  min_wal_size: '512MB',
  // A container's /dev/shm is often 64 MB; parallel plans would fail there, and a coordinator's queries are short.
  max_parallel_workers_per_gather: '0',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_line_prefix: '%m [%p] ',
  // A lost append is an ordinary outcome, and its statement is long and carries data.
  log_min_error_statement: 'fatal',
};

/** What the durability and the privacy of the server rest on. */
const FIXED_SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  password_encryption: 'scram-sha-256',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  logging_collector: 'off',
  log_destination: 'stderr',
};

const REFUSED_SETTINGS = new Set([...Object.keys(FIXED_SETTINGS), 'port', 'data_directory', 'hba_file', 'config_file']);

/** Refuses what must not be changed; fills in the rest. */
export function serverOptions(extra: Readonly<Record<string, string>>, port: number | undefined): ServerOptions {
  for (const name of Object.keys(extra)) {
    if (REFUSED_SETTINGS.has(name.toLowerCase())) {
      throw new Error(`the embedded Postgres does not let ${name} be changed`);
    }
    if (!/^[a-z_][a-z0-9_.]*$/i.test(name)) throw new Error(`${JSON.stringify(name)} is no Postgres setting`);
  }
  if (port !== undefined && !(Number.isInteger(port) && port > 0 && port < 65_536)) {
    throw new RangeError(`the port of the embedded Postgres must be 1 to 65535, not ${port}`);
  }
  return { settings: { ...DEFAULT_SETTINGS, ...extra, ...FIXED_SETTINGS }, port };
}
