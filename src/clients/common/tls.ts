import { readFileSync } from 'node:fs';
import { isIP, type Socket } from 'node:net';
import { connect, createSecureContext, type SecureContextOptions } from 'node:tls';
import { CallCredentials, ChannelCredentials } from '@grpc/grpc-js';
import { WritError } from './errors.js';

/** How the other end is known, and what is shown to it; all files PEM. */
export interface TlsOptions {
  /** Who vouches for the coordinator. Default: the authorities that Node trusts. */
  readonly caFile?: string;
  /** The client's certificate, then those between it and its authority. Goes with keyFile. */
  readonly certFile?: string;
  /** The private key of the client's certificate. Goes with certFile. */
  readonly keyFile?: string;
}

/**
 * TLS whose files are read anew for every connection, so that a certificate that was renewed is used from the next one
 * on. Throws a WritError that names the file that cannot be used.
 */
export function tlsCredentials(address: string, options: TlsOptions): ChannelCredentials {
  if ((options.certFile === undefined) !== (options.keyFile === undefined))
    throw new WritError('INVALID_ARGUMENT', 'a client certificate and its key go together: give both files, or none');
  // What is wrong now is said now; later it is a connection that cannot be made.
  createSecureContext(read(options));
  return new FileCredentials(hostOf(address), options);
}

/** The host of `host:port`, an IPv6 address without its brackets. */
export function hostOf(address: string): string {
  return address.slice(0, address.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1');
}

function read({ caFile, certFile, keyFile }: TlsOptions): SecureContextOptions {
  return {
    minVersion: 'TLSv1.2',
    ...(caFile === undefined ? {} : { ca: readPem(caFile) }),
    ...(certFile === undefined ? {} : { cert: readPem(certFile) }),
    ...(keyFile === undefined ? {} : { key: readPem(keyFile) }),
  };
}

function readPem(file: string): Buffer {
  let pem: Buffer;
  try {
    pem = readFileSync(file);
  } catch (error) {
    throw new WritError('INVALID_ARGUMENT', `${file} cannot be read: ${(error as Error).message}`);
  }
  if (!pem.includes('-----BEGIN ')) throw new WritError('INVALID_ARGUMENT', `${file} is not in PEM form`);
  return pem;
}

/** The library's own credentials keep the files as they were, or look at them by a timer that keeps a process alive. */
class FileCredentials extends ChannelCredentials {
  readonly #host: string;
  readonly #options: TlsOptions;

  constructor(host: string, options: TlsOptions) {
    super();
    this.#host = host;
    this.#options = options;
  }

  _isSecure(): boolean {
    return true;
  }

  _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  _createSecureConnector(
    ...[, , callCredentials]: Parameters<ChannelCredentials['_createSecureConnector']>
  ): ReturnType<ChannelCredentials['_createSecureConnector']> {
    return {
      connect: (socket) => this.#connect(socket),
      waitForReady: async () => undefined,
      getCallCredentials: () => callCredentials ?? CallCredentials.createEmpty(),
      destroy: () => undefined,
    };
  }

  async #connect(socket: Socket): Promise<{ socket: Socket; secure: boolean }> {
    // The host is what the certificate must be for; as a name to ask for, it may not be an address (RFC 6066).
    const name = isIP(this.#host) === 0 ? { servername: this.#host } : {};
    const secured = connect({ socket, host: this.#host, ...name, ...read(this.#options), ALPNProtocols: ['h2'] });
    await new Promise<void>((resolve, reject) => {
      secured.once('secureConnect', resolve);
      secured.once('error', reject);
      secured.once('close', () => reject(new Error('the connection was closed during the handshake')));
    });
    return { socket: secured, secure: true };
  }
}
