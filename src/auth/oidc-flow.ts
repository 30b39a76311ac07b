import {
  AuthorizationResponseError,
  type AuthorizationServer,
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  type Client,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type CustomFetchOptions,
  calculatePKCECodeChallenge,
  customFetch,
  discoveryRequest,
  generateRandomCodeVerifier,
  generateRandomNonce,
  generateRandomState,
  None,
  processAuthorizationCodeResponse,
  processDiscoveryResponse,
  validateAuthResponse,
} from 'oauth4webapi';
import { Fault } from '../domain/fault.js';
import { monotonicMicros } from '../platform/clock.js';
import { boundedText } from './bounded-answer.js';

/** An OpenID provider at which people sign in to the console. */
export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  /** Null: a public client, which PKCE alone protects. */
  readonly clientSecret: string | null;
  /** Separated by spaces; `openid` is among them. */
  readonly scope: string;
}

/** What the answer of one sign-in is held against. Secret from everybody but the browser that began it. */
export interface OidcAttempt {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly redirectUri: string;
}

/** A request to the provider, with all it answers, ends within this. */
const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 512 << 10;
/** Its configuration is asked for again after so long, */
const REMEMBER_MICROS = 10 * 60e6;
/** and after a failure so long nobody is asked. */
const PAUSE_AFTER_FAILURE_MICROS = 5e6;
/** Sign-ins that wait for the provider at a time. */
const MAX_UNDER_WAY = 16;

/**
 * The code flow of OpenID Connect with PKCE (RFC 7636), by oauth4webapi. What comes of it is an ID token whose issuer,
 * audience, times and nonce fit; its signature, and whom it stands for, is for the authenticator to say, by which it
 * counts as much as if it had been presented as a bearer token.
 */
export class OidcFlow {
  readonly #settings: OidcSettings;
  readonly #client: Client;
  readonly #options: { [allowInsecureRequests]: boolean; [customFetch]: typeof boundedFetch };
  #known: { readonly server: Promise<AuthorizationServer>; readonly until: number } | null = null;
  #underWay = 0;

  constructor(settings: OidcSettings) {
    this.#settings = settings;
    this.#client = { client_id: settings.clientId };
    // Settings name http only for a provider on this machine.
    this.#options = {
      [allowInsecureRequests]: new URL(settings.issuer).protocol === 'http:',
      [customFetch]: boundedFetch,
    };
  }

  /** Where the browser goes to sign in, and what its return is held against. */
  async begin(redirectUri: string): Promise<{ readonly url: string; readonly attempt: OidcAttempt }> {
    const { authorization_endpoint: endpoint } = await this.#server();
    if (endpoint === undefined || !URL.canParse(endpoint)) throw unavailable('names no authorization_endpoint');
    const attempt: OidcAttempt = {
      state: generateRandomState(),
      nonce: generateRandomNonce(),
      verifier: generateRandomCodeVerifier(),
      redirectUri,
    };
    const url = new URL(endpoint);
    const asked = {
      client_id: this.#settings.clientId,
      response_type: 'code',
      redirect_uri: redirectUri,
      scope: this.#settings.scope,
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: 'S256',
    };
    for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
    return { url: url.href, attempt };
  }

  /** The ID token; rejects with a Fault. `answer` is the query that the browser came back with. */
  async finish(answer: URLSearchParams, attempt: OidcAttempt): Promise<string> {
    if (this.#underWay >= MAX_UNDER_WAY)
      throw new Fault('unavailable', 'AUTHENTICATION_BUSY', 'too many sign-ins wait for the provider; try again');
    this.#underWay += 1;
    try {
      return await this.#exchange(answer, attempt);
    } finally {
      this.#underWay -= 1;
    }
  }

  async #exchange(answer: URLSearchParams, { state, nonce, verifier, redirectUri }: OidcAttempt): Promise<string> {
    const server = await this.#server();
    const client = this.#client;
    let code: URLSearchParams;
    try {
      code = validateAuthResponse(server, client, answer, state);
    } catch (error) {
      throw error instanceof AuthorizationResponseError
        ? rejected('denied', 'the provider did not sign you in', error)
        : rejected('answer', 'the answer is not one to the sign-in that this browser began', error);
    }
    try {
      const auth = this.#authentication(server);
      const options = { ...this.#options, signal: AbortSignal.timeout(TIMEOUT_MS) };
      const response = await authorizationCodeGrantRequest(server, client, auth, code, redirectUri, verifier, options);
      const { id_token: idToken } = await processAuthorizationCodeResponse(server, client, response, {
        expectedNonce: nonce,
        requireIdToken: true,
      });
      if (idToken === undefined) throw new Error('there is no ID token');
      return idToken;
    } catch (error) {
      if (isUnreachable(error)) throw unavailable('cannot be reached, or answers with an error of its own', error);
      throw rejected('token', 'the provider gave no ID token for this sign-in that could be believed', error);
    }
  }

  #authentication({ token_endpoint_auth_methods_supported: methods }: AuthorizationServer): ClientAuth {
    const { clientSecret } = this.#settings;
    if (clientSecret === null) return None();
    const basic = methods === undefined || methods.includes('client_secret_basic');
    return basic ? ClientSecretBasic(clientSecret) : ClientSecretPost(clientSecret);
  }

  /** One request, however many ask. */
  #server(): Promise<AuthorizationServer> {
    const now = monotonicMicros();
    if (this.#known !== null && now < this.#known.until) return this.#known.server;
    const server = this.#discover().catch((error: unknown) => {
      this.#known = { server, until: monotonicMicros() + PAUSE_AFTER_FAILURE_MICROS };
      throw unavailable('cannot be reached, or has no configuration of its own', error);
    });
    this.#known = { server, until: now + REMEMBER_MICROS };
    return server;
  }

  async #discover(): Promise<AuthorizationServer> {
    const issuer = new URL(this.#settings.issuer);
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await discoveryRequest(issuer, { algorithm: 'oidc', ...this.#options, signal });
    // Compared as it was written: a URL has a slash at its end that an issuer may not have.
    return processDiscoveryResponse(issuer, response);
  }
}

class ProviderFailed extends Error {
  override readonly name = 'ProviderFailed';
}

async function boundedFetch(
  url: string,
  { body, headers, method, redirect, signal }: CustomFetchOptions<string, URLSearchParams | undefined>,
): Promise<Response> {
  const response = await fetch(url, {
    method,
    headers,
    redirect,
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
  });
  if (response.status >= 500) throw new ProviderFailed(`the provider answers ${response.status}`);
  const text = await boundedText(response, MAX_ANSWER_BYTES);
  return new Response(text === '' ? null : text, { status: response.status, headers: response.headers });
}

/** As fetch tells of it, or a timeout. */
function isUnreachable(error: unknown): boolean {
  if (error instanceof ProviderFailed) return true;
  return error instanceof Error && (error.message === 'fetch failed' || /^(Timeout|Abort)Error$/.test(error.name));
}

function rejected(cause: string, message: string, error: unknown): Fault {
  return new Fault('unauthenticated', 'SIGN_IN_REJECTED', message, { metadata: { cause }, cause: error });
}

function unavailable(what: string, error?: unknown): Fault {
  return new Fault('unavailable', 'ISSUER_UNAVAILABLE', `the provider of sign-ins ${what}`, { cause: error });
}
