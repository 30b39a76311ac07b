import { ServerCredentials } from '@grpc/grpc-js';
import type { ServerTls } from '../../platform/server-tls.js';

/**
 * The port's certificate and demands, changed while it is open: new connections get the new files, those that stand,
 * with their streams, keep theirs. The library's own credentials of files cannot ask for a client certificate without
 * demanding it, or drop what is in force when a file is broken.
 */
export class TlsCredentials extends ServerCredentials {
  constructor(tls: ServerTls) {
    super({ requestCert: tls.clientCerts !== 'none', rejectUnauthorized: tls.clientCerts === 'required' }, tls.current);
    tls.onChange((options) => this.updateSecureContextOptions(options));
  }

  _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}
