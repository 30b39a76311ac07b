import { TLSSocket } from 'node:tls';

/** The client certificate of a session, if it has one that an authority of ours vouches for (DER). */
export function certificateOf(socket: unknown): Uint8Array | undefined {
  return socket instanceof TLSSocket && socket.authorized ? socket.getPeerCertificate().raw : undefined;
}
