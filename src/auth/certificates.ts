import 'reflect-metadata';
import { createHash } from 'node:crypto';
import { SubjectAlternativeNameExtension, X509Certificate } from '@peculiar/x509';
import { Fault } from '../domain/fault.js';
import { wallClockMicros } from '../platform/clock.js';
import type { Principal } from './principal.js';
import { type PrincipalEntry, PrincipalsFileError } from './principal-entry.js';

/** What a session's client certificate says, as far as it concerns who calls. */
export interface ClientCertificate {
  /** As `x5t#S256` of RFC 8705 has it. */
  readonly thumbprint: string;
  /** Whom it stands for; undefined: nobody, it only binds. */
  readonly principal: Principal | undefined;
}

interface Read extends ClientCertificate {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** Certificates whose content is remembered: about as many as there are callers with one. */
const MAX_REMEMBERED = 1_000;

/**
 * Who holds which certificate. It is given only certificates that the TLS session has verified. One with a SPIFFE id is
 * known by that alone, one without by its subject; what is written elsewhere in it counts for nothing.
 */
export class CertificateIndex {
  readonly #bySpiffeId = new Map<string, Principal>();
  readonly #bySubject = new Map<string, Principal>();
  readonly #read = new Map<string, Read>();

  /** Throws a PrincipalsFileError when two principals have one certificate. */
  constructor(entries: readonly PrincipalEntry[], principals: ReadonlyMap<string, Principal>) {
    for (const { name, certificates = [] } of entries) {
      const principal = principals.get(name);
      if (principal === undefined) continue;
      for (const certificate of certificates) {
        const [index, key] =
          'spiffeId' in certificate ? [this.#bySpiffeId, certificate.spiffeId] : [this.#bySubject, certificate.subject];
        if (index.has(key) && index.get(key) !== principal)
          throw new PrincipalsFileError(`${name}: the certificate of ${key} is another entry's too`);
        index.set(key, principal);
      }
    }
  }

  /** Reads a verified certificate (DER); throws a Fault when it may not be used, or not any more. */
  read(der: Uint8Array): ClientCertificate {
    const thumbprint = createHash('sha256').update(der).digest('base64url');
    const certificate = this.#read.get(thumbprint) ?? this.#remember(this.#parse(der, thumbprint));
    const now = wallClockMicros() / 1_000;
    // It was valid when the session began; sessions last longer than short-lived certificates.
    if (now > certificate.notAfterMs || now < certificate.notBeforeMs)
      throw rejected('the client certificate has expired; connect again with a new one');
    return certificate;
  }

  #parse(der: Uint8Array, thumbprint: string): Read {
    const certificate = new X509Certificate(new Uint8Array(der));
    const spiffeId = spiffeIdOf(certificate);
    return {
      thumbprint,
      principal: spiffeId === null ? this.#bySubject.get(certificate.subject) : this.#bySpiffeId.get(spiffeId),
      notBeforeMs: certificate.notBefore.getTime(),
      notAfterMs: certificate.notAfter.getTime(),
    };
  }

  #remember(certificate: Read): Read {
    if (this.#read.size >= MAX_REMEMBERED) {
      const [oldest = ''] = this.#read.keys();
      this.#read.delete(oldest);
    }
    this.#read.set(certificate.thumbprint, certificate);
    return certificate;
  }
}

/** The SPIFFE id of a certificate; null: it has none. One that has several URIs is no X.509-SVID and is refused. */
function spiffeIdOf(certificate: X509Certificate): string | null {
  const names = certificate.getExtension(SubjectAlternativeNameExtension)?.names.items ?? [];
  const uris = names.filter(({ type }) => type === 'url').map(({ value }) => value);
  const ids = uris.filter((uri) => uri.toLowerCase().startsWith('spiffe:'));
  if (ids.length === 0) return null;
  if (uris.length > 1) throw rejected('the client certificate has a SPIFFE id and other URIs besides');
  return ids[0] ?? null;
}

function rejected(message: string): Fault {
  return new Fault('unauthenticated', 'CERTIFICATE_REJECTED', message, { metadata: { cause: 'certificate' } });
}
