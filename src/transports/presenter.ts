import { X509Certificate } from 'node:crypto';

/**
 * SHA-256 of a certificate, as `x5t#S256` of RFC 8705 has it. Gateways tell certificates of their clients as PEM in URL
 * encoding: `$ssl_client_escaped_cert` of nginx, `source.certificate` of Envoy. Null: it is none.
 */
export function certificateThumbprint(escapedPem: string): string | null {
  try {
    const { fingerprint256 } = new X509Certificate(decodeURIComponent(escapedPem));
    return Buffer.from(fingerprint256.replaceAll(':', ''), 'hex').toString('base64url');
  } catch {
    return null;
  }
}
