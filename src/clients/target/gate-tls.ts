import { createHash } from 'node:crypto';
import type { PeerCertificate } from 'node:tls';

/** SHA-256 of a certificate (DER), base64url, as credentials are bound to it (RFC 8705). */
export function thumbprintOf(certificate: Uint8Array): string {
  return createHash('sha256').update(certificate).digest('base64url');
}

/** Of the client certificate of a connection; undefined: plain text, or none was shown. */
export function peerThumbprint(socket: object | undefined): string | undefined {
  const { getPeerCertificate } = (socket ?? {}) as { getPeerCertificate?: () => PeerCertificate };
  const raw = getPeerCertificate?.call(socket)?.raw;
  return raw === undefined ? undefined : thumbprintOf(raw);
}
