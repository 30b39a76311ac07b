import { Fault } from '../domain/fault.js';
import type { CertificateIndex, ClientCertificate } from './certificates.js';
import { type IssuerEntry, Issuers, type KeySources, type VerifiedToken } from './issuers.js';
import type { Principal } from './principal.js';
import { type PrincipalEntry, principalsOf } from './principal-entry.js';
import { bearerToken, digestOf, TokenIndex, unauthenticated } from './tokens.js';

/** Tells who calls. */
export interface Authenticator {
  /**
   * The principal of an `Authorization` header's value and of the client certificate that the TLS session has verified
   * (DER; undefined: there is none). Throws, or rejects with, a Fault: `unauthenticated`, or `unavailable` when it
   * cannot be found out now.
   */
  authenticate(authorization: string | undefined, certificate?: Uint8Array): Principal | Promise<Principal>;
}

/** As the coordinator has it: it also tells on whose behalf somebody calls. */
export interface CallerAuthenticator extends Authenticator {
  /** The person whose token it is, for a caller that may act for them (I2); rejects with a Fault. */
  initiatorOf(token: string, caller: string): Promise<string>;
}

export interface AuthenticatorOptions {
  readonly principals: readonly PrincipalEntry[];
  readonly issuers?: readonly IssuerEntry[];
  readonly keySources?: KeySources;
  /** Reads client certificates; absent: none are asked for. Made by its own module, which few need. */
  readonly certificates?: typeof CertificateIndex;
  /** Told of every refusal, by its cause. */
  readonly refused?: (cause: string) => void;
}

/**
 * An authenticator by static tokens, signed tokens of configured issuers, and client certificates.
 *
 * With a token and a certificate: the token says who calls. A certificate that stands for a principal must then stand
 * for the same one, so that a token that was taken elsewhere is worth nothing beside the taker's own certificate; one
 * that stands for nobody only binds what is issued to the session.
 *
 * Throws a PrincipalsFileError when entries contradict each other.
 */
export function createCallerAuthenticator(options: AuthenticatorOptions): CallerAuthenticator {
  const { principals: entries, refused = () => undefined } = options;
  const principals = principalsOf(entries);
  const tokens = new TokenIndex(entries, principals);
  const issuers = new Issuers(options.issuers ?? [], principals, options.keySources);
  const certificates = options.certificates === undefined ? null : new options.certificates(entries, principals);

  const byToken = (token: string): VerifiedToken | Principal | Promise<VerifiedToken> => {
    const digest = digestOf(token);
    const known = tokens.find(digest);
    if (known !== undefined) return known;
    if (issuers.couldBe(token)) return issuers.verify(token, digest);
    throw unauthenticated('unknown_token', 'the token is not known here');
  };

  const authenticate: Authenticator['authenticate'] = (authorization, der) => {
    const certificate = der === undefined ? undefined : certificates?.read(der);
    if (authorization === undefined && certificate !== undefined) return byCertificate(certificate);
    const found = byToken(bearerToken(authorization));
    return found instanceof Promise
      ? found.then((verified) => together(verified, certificate))
      : together(found, certificate);
  };

  const refuse = (error: unknown): never => {
    if (error instanceof Fault) refused(error.details.metadata?.cause ?? error.reason.toLowerCase());
    throw error;
  };
  return {
    authenticate(authorization, certificate) {
      try {
        const found = authenticate(authorization, certificate);
        return found instanceof Promise ? found.catch(refuse) : found;
      } catch (error) {
        return refuse(error);
      }
    },
    initiatorOf: (token, caller) => issuers.initiatorOf(token, caller),
  };
}

function byCertificate(certificate: ClientCertificate): Principal {
  if (certificate.principal === undefined)
    throw unauthenticated(
      'unknown_certificate',
      'the call carries no token, and its client certificate is not known here',
    );
  return bound(certificate.principal, certificate);
}

/** A token's principal, as far as the session's certificate allows it. */
function together(found: VerifiedToken | Principal, certificate: ClientCertificate | undefined): Principal {
  const { principal, boundTo } = 'principal' in found ? found : { principal: found, boundTo: null };
  if (boundTo !== null && boundTo !== certificate?.thumbprint)
    throw new Fault(
      'unauthenticated',
      'TOKEN_REJECTED',
      'the token is bound to a client certificate, and the session was not made with it',
      { metadata: { cause: 'binding' } },
    );
  if (certificate === undefined) return principal;
  if (certificate.principal !== undefined && certificate.principal.name !== principal.name)
    throw new Fault(
      'unauthenticated',
      'CREDENTIALS_DISAGREE',
      'the token is of another principal than the client certificate; use one of the two, or both of one principal',
      { metadata: { cause: 'disagree' } },
    );
  return bound(principal, certificate);
}

function bound(principal: Principal, { thumbprint }: ClientCertificate): Principal {
  return { ...principal, certificateThumbprint: thumbprint };
}
