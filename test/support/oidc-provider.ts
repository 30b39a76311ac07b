import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  type JWTPayload,
  SignJWT,
  UnsecuredJWT,
} from 'jose';

/** An OpenID provider of a test's own, on loopback: everybody who comes is signed in at once. */
export interface TestProvider {
  readonly issuer: string;
  readonly clientId: string;
  /** How it misbehaves from now on. */
  behave(how: ProviderFaults): void;
  /** Requests to its token endpoint, as forms. */
  readonly exchanges: URLSearchParams[];
  stop(): Promise<void>;
}

export interface ProviderFaults {
  /** Claims of the ID token that are others than they should be. */
  readonly claims?: JWTPayload;
  /** By what it signs: its own key, one that nobody knows, or not at all. */
  readonly signs?: 'itself' | 'stranger' | 'none';
  /** Sends the person back without having signed them in. */
  readonly denies?: boolean;
  /** Answers the exchange of the code by this status. */
  readonly tokenStatus?: number;
  /** The issuer that its configuration names. */
  readonly names?: string;
}

const CLIENT_ID = 'writ-console';

export async function startProvider(person: string): Promise<TestProvider> {
  const [own, stranger] = await Promise.all([generateKeyPair('ES256'), generateKeyPair('ES256')]);
  const jwk = await exportJWK(own.publicKey);
  const kid = await calculateJwkThumbprint(jwk);
  const exchanges: URLSearchParams[] = [];
  const begun = new Map<string, URLSearchParams>();
  let faults: ProviderFaults = {};
  let issuer = '';

  const idToken = (nonce: string): Promise<string> | string => {
    const now = Math.floor(Date.now() / 1_000);
    const claims = { iss: issuer, aud: CLIENT_ID, sub: 'u-1', email: person, nonce, iat: now, exp: now + 600 };
    const payload: JWTPayload = { ...claims, ...faults.claims };
    if (faults.signs === 'none') return new UnsecuredJWT(payload).encode();
    const key: CryptoKey = (faults.signs === 'stranger' ? stranger : own).privateKey;
    return new SignJWT(payload).setProtectedHeader({ alg: 'ES256', kid }).sign(key);
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? '/', issuer);
    const json = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (pathname === '/.well-known/openid-configuration')
      return json(200, {
        issuer: faults.names ?? issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
        id_token_signing_alg_values_supported: ['ES256'],
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
      });
    if (pathname === '/keys') return json(200, { keys: [{ ...jwk, kid, alg: 'ES256' }] });
    if (pathname === '/authorize') {
      const back = new URL(searchParams.get('redirect_uri') ?? '');
      back.searchParams.set('state', searchParams.get('state') ?? '');
      if (faults.denies === true) back.searchParams.set('error', 'access_denied');
      else {
        const code = `code-${begun.size}`;
        begun.set(code, searchParams);
        back.searchParams.set('code', code);
      }
      return void response.writeHead(302, { location: back.href }).end();
    }
    let text = '';
    for await (const part of request) text += String(part);
    const form = new URLSearchParams(text);
    exchanges.push(form);
    const asked = begun.get(form.get('code') ?? '');
    if (faults.tokenStatus !== undefined || asked === undefined)
      return json(faults.tokenStatus ?? 400, { error: 'invalid_grant' });
    begun.delete(form.get('code') ?? '');
    return json(200, {
      access_token: 'opaque',
      token_type: 'bearer',
      expires_in: 600,
      id_token: await idToken(asked.get('nonce') ?? ''),
    });
  };

  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    issuer,
    clientId: CLIENT_ID,
    exchanges,
    behave(how) {
      faults = how;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
