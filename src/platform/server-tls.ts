import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { wallClockMicros } from './clock.js';
import type { TlsConfig } from './config.js';
import type { Logger } from './log.js';
import { LOOK_EVERY_MS, type WatchedFiles, watchFiles } from './watched-files.js';

/** What both ports present and demand; the newest files that fit together. */
export interface ServerTls {
  /** Whether client certificates are asked for, and whether a connection without one is refused. */
  readonly clientCerts: 'none' | 'optional' | 'required';
  readonly current: SecureContextOptions;
  /** Calls back with what is current from then on; connections that stand keep what they have. */
  onChange(listener: (options: SecureContextOptions) => void): void;
  /** Milliseconds since 1970: when the server's certificate ends. */
  readonly notAfterMs: number;
  /** What is wrong soon; nothing while there is nothing. */
  warnings(): readonly string[];
  stop(): void;
}

/** TLS files that cannot be used, in words for the person who set them. */
export class TlsFilesError extends Error {
  override readonly name = 'TlsFilesError';
}

/** Certificates of public authorities are renewed a month before they end; half of it is late. */
const WARN_BEFORE_MS = 14 * 86_400_000;
const MAX_BYTES = 1 << 20;

interface Loaded {
  readonly options: SecureContextOptions;
  readonly notAfterMs: number;
}

/** Loads the files and looks for changes from then on; throws a TlsFilesError that names the file that is wrong. */
export async function openServerTls(config: TlsConfig, log: Logger, lookEveryMs = LOOK_EVERY_MS): Promise<ServerTls> {
  const tls = new WatchedTls(config, await loadTls(config), log, lookEveryMs);
  tls.warn();
  return tls;
}

class WatchedTls implements ServerTls {
  readonly clientCerts: ServerTls['clientCerts'];
  readonly #config: TlsConfig;
  readonly #log: Logger;
  readonly #watched: WatchedFiles;
  readonly #listeners: ((options: SecureContextOptions) => void)[] = [];
  #loaded: Loaded;

  constructor(config: TlsConfig, loaded: Loaded, log: Logger, lookEveryMs: number) {
    this.#config = config;
    this.#loaded = loaded;
    this.#log = log;
    this.clientCerts = config.clientCaFile === null ? 'none' : config.clientCerts;
    this.#watched = watchFiles(filesOf(config), () => this.#reload(), lookEveryMs);
  }

  get current(): SecureContextOptions {
    return this.#loaded.options;
  }

  get notAfterMs(): number {
    return this.#loaded.notAfterMs;
  }

  onChange(listener: (options: SecureContextOptions) => void): void {
    this.#listeners.push(listener);
  }

  warnings(): readonly string[] {
    const warning = expiryWarning(this.#config.certFile, this.notAfterMs);
    return warning === null ? [] : [warning];
  }

  warn(): void {
    for (const warning of this.warnings()) this.#log.warn({ component: 'tls' }, warning);
  }

  stop(): void {
    this.#watched.stop();
  }

  /** A pair that does not fit together, as between the writing of its two files, leaves the old one in force. */
  async #reload(): Promise<void> {
    try {
      this.#loaded = await loadTls(this.#config);
    } catch (error) {
      this.#log.error({ component: 'tls', detail: (error as Error).message }, 'the new TLS files are not used');
      return;
    }
    for (const listener of this.#listeners) listener(this.#loaded.options);
    this.#log.info({ component: 'tls', not_after: new Date(this.notAfterMs).toISOString() }, 'TLS files reloaded');
    this.warn();
  }
}

/** What there is to say about a certificate's end; null: nothing yet. */
export function expiryWarning(certFile: string, notAfterMs: number): string | null {
  const left = notAfterMs - wallClockMicros() / 1_000;
  if (left > WARN_BEFORE_MS) return null;
  return `the certificate in ${certFile} ${left <= 0 ? 'has expired' : `expires in ${Math.floor(left / 86_400_000)} days`}`;
}

function filesOf({ certFile, keyFile, clientCaFile }: TlsConfig): string[] {
  return clientCaFile === null ? [certFile, keyFile] : [certFile, keyFile, clientCaFile];
}

/** Reads the files and sees that they fit together; throws a TlsFilesError. */
export async function loadTls(config: TlsConfig): Promise<Loaded> {
  const cert = await readBounded('WRIT_TLS_CERT_FILE', config.certFile);
  const key = await readBounded('WRIT_TLS_KEY_FILE', config.keyFile);
  const ca = config.clientCaFile === null ? null : await readBounded('WRIT_TLS_CLIENT_CA_FILE', config.clientCaFile);
  const leaf = certificateIn('WRIT_TLS_CERT_FILE', config.certFile, cert);
  if (ca !== null) certificateIn('WRIT_TLS_CLIENT_CA_FILE', config.clientCaFile ?? '', ca);
  const options: SecureContextOptions = { cert, key, minVersion: 'TLSv1.2', ...(ca === null ? {} : { ca }) };
  try {
    createSecureContext(options);
  } catch (error) {
    const { message } = error as Error;
    throw new TlsFilesError(
      `WRIT_TLS_KEY_FILE: ${config.keyFile} and ${config.certFile} do not fit together: ${message}`,
    );
  }
  return { options, notAfterMs: Date.parse(leaf.validTo) };
}

async function readBounded(variable: string, file: string): Promise<Buffer> {
  try {
    const { size } = await stat(file);
    if (size <= MAX_BYTES) return await readFile(file);
  } catch (error) {
    throw new TlsFilesError(`${variable}: ${file} cannot be read: ${(error as Error).message}`);
  }
  throw new TlsFilesError(`${variable}: ${file} is larger than ${MAX_BYTES} bytes`);
}

function certificateIn(variable: string, file: string, pem: Buffer): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch {
    throw new TlsFilesError(`${variable}: ${file} holds no certificate in PEM form`);
  }
}
