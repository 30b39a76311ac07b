import { z } from 'zod';
import type { Authenticator } from '../../auth/authenticator.js';
import { type BrowserSession, beginSession, openSession, sealSession } from '../../auth/browser-session.js';
import type { OneTimeCodes } from '../../auth/one-time-codes.js';
import type { Principal } from '../../auth/principal.js';
import { isSameSecret } from '../../auth/same-secret.js';
import { sealKey } from '../../auth/sealed.js';
import { unauthenticated } from '../../auth/tokens.js';
import { Fault, invalidArgument } from '../../domain/fault.js';
import { wallClockMicros } from '../../platform/clock.js';
import { LineBudget } from '../../platform/line-budget.js';
import type { Logger } from '../../platform/log.js';
import { certificateOf } from './client-certificate.js';
import { type CookieKind, clearCookie, MAX_COOKIE_LENGTH, readCookie, writeCookie } from './cookies.js';
import { FailedSignIns } from './failed-sign-ins.js';
import { jsonOf } from './json-body.js';
import type { OidcSignIn } from './oidc-sign-in.js';
import { type BrowserContext, demandOwnPage, refuseForeignPage } from './own-origin.js';
import { NO_STORE, problem } from './problem.js';

/** How people sign in at the console, and what their browser's requests are known by. */
export interface SignInOptions {
  readonly authenticator: Authenticator;
  /** 32 random bytes; what one replica has sealed, those with the same open too. */
  readonly secret: Uint8Array;
  /** The codes of the embedded mode, and the token that they stand for; null: there are none. */
  readonly embedded: { readonly codes: OneTimeCodes; readonly token: string } | null;
  /** At a provider; null: none is configured. */
  readonly oidc: OidcSignIn | null;
  /** WRIT_CONSOLE_URL. */
  readonly consoleUrl: string | null;
  /** Whether browsers reach the console by TLS. */
  readonly secure: boolean;
  /** Told of every sign-in and session that does not count, by its cause, as far as the authenticator is not. */
  readonly refused: (cause: string) => void;
  readonly log: Logger;
  /** Milliseconds since 1970; default: the clock of this machine. */
  readonly nowMs?: () => number;
}

const SESSION: CookieKind = { name: 'writ-session', sameSite: 'Strict' };
const CSRF_HEADER = 'writ-csrf';
/** Somebody can sign in and out in a loop. */
const MAX_LINES_PER_SECOND = 20;
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

const credentials = z.union(
  [
    z.strictObject({ token: z.string().regex(/^[\x21-\x7e]{1,8185}$/) }),
    z.strictObject({ code: z.string().regex(/^[A-Za-z0-9_-]{1,128}$/) }),
  ],
  'must be {"token": "…"}, a bearer token without spaces, or {"code": "…"}, a one-time code',
);

/**
 * Sessions of browsers. A sealed cookie carries the bearer token, which is authenticated anew by every request; what
 * a page of another origin could have a browser do is kept out by SameSite, Origin and a header that only our own page
 * can fill in.
 */
export class SignIn {
  readonly #options: SignInOptions;
  readonly #key: Uint8Array;
  readonly #failed = new FailedSignIns();
  readonly #lines = new LineBudget(MAX_LINES_PER_SECOND);

  constructor(options: SignInOptions) {
    this.#options = options;
    this.#key = sealKey(options.secret, 'browser session');
  }

  /**
   * What the session of a request without `Authorization` header stands in for; undefined: it has none. Throws a Fault
   * for a session that has ended, and for a request that changes something and does not come from our own page, also
   * when it is a client certificate that would authenticate it.
   */
  async authorizationOf(c: BrowserContext): Promise<string | undefined> {
    const changes = !SAFE_METHODS.has(c.req.method);
    if (changes) refuseForeignPage(c, this.#options.consoleUrl);
    const session = await this.#session(c);
    if (session === null) return undefined;
    if (changes) this.#demandOwnRequest(c, session);
    return `Bearer ${session.token}`;
  }

  /** POST /auth/session: signs in by a token or a one-time code. */
  async open(c: BrowserContext): Promise<Response> {
    refuseForeignPage(c, this.#options.consoleUrl);
    return this.#attempt(c, async () => {
      const given = credentials.safeParse(await jsonOf(c));
      if (!given.success)
        throw invalidArgument([{ field: 'body', description: given.error.issues[0]?.message ?? 'is malformed' }]);
      const [method, token] =
        'code' in given.data ? ['code', this.#redeem(given.data.code)] : ['token', given.data.token];
      const session = await this.#signIn(c, token, method);
      return c.json(session, 200, NO_STORE);
    });
  }

  /** GET /auth/session: who is signed in, or whether one can at a provider. */
  async show(c: BrowserContext): Promise<Response> {
    try {
      const session = await this.#session(c);
      if (session === null) throw unauthenticated('nothing', 'nobody is signed in by this browser');
      const principal = await this.#authenticate(c, session.token);
      return c.json(shown(session, principal), 200, NO_STORE);
    } catch (error) {
      if (!(error instanceof Fault && error.faultClass === 'unauthenticated')) throw error;
      clearCookie(c, SESSION, this.#options.secure);
      return problem(c, 401, error.reason, error.message, { oidc: this.#options.oidc !== null });
    }
  }

  /** DELETE /auth/session: signs out; idempotent. */
  async close(c: BrowserContext): Promise<Response> {
    refuseForeignPage(c, this.#options.consoleUrl);
    const session = await this.#session(c).catch(() => null);
    if (session !== null) {
      this.#demandOwnRequest(c, session);
      const principal = await Promise.resolve(this.#authenticate(c, session.token)).catch(() => null);
      this.#tell({ principal: principal?.name }, 'signed out of the console');
    }
    clearCookie(c, SESSION, this.#options.secure);
    return c.body(null, 204, NO_STORE);
  }

  /** GET /auth/oidc/start: on to the provider. */
  start(c: BrowserContext): Promise<Response> {
    return this.#oidc().start(c);
  }

  /** GET /auth/oidc/callback: back from it, and on to the console, which shows what went wrong. */
  callback(c: BrowserContext): Promise<Response> {
    return this.#oidc().callback(c, {
      attempt: (work) => this.#attempt(c, work),
      signIn: (token) => this.#signIn(c, token, 'oidc'),
    });
  }

  /** Counts what fails against the address that it came from. */
  async #attempt<T>(c: BrowserContext, work: () => Promise<T>): Promise<T> {
    const address = c.env.incoming.socket.remoteAddress ?? '';
    this.#failed.admit(address);
    try {
      return await work();
    } catch (error) {
      if (error instanceof Fault && error.faultClass === 'unauthenticated') this.#failed.note(address);
      throw error;
    }
  }

  /** Begins the session of a token, if it counts. */
  async #signIn(c: BrowserContext, token: string, method: string): Promise<object> {
    const principal = await this.#authenticate(c, token);
    const now = this.#now();
    const session = beginSession(token, now);
    const sealed = await sealSession(session, this.#key);
    if (sealed.length > MAX_COOKIE_LENGTH) throw new Error('a session of the longest token fits the cookies');
    writeCookie(c, SESSION, this.#options.secure, sealed, session.endsAtMs - now);
    this.#tell({ principal: principal.name, method }, 'signed in to the console');
    return shown(session, principal);
  }

  #tell(line: object, what: string): void {
    if (this.#lines.take()) this.#options.log.info({ ...line, ...this.#lines.suppressed() }, what);
  }

  #redeem(code: string): string {
    const { embedded } = this.#options;
    if (embedded?.codes.redeem(code)) return embedded.token;
    this.#options.refused('one_time_code');
    throw new Fault(
      'unauthenticated',
      'CODE_REJECTED',
      'the link has been used, is older than 15 minutes, or is of an earlier start of the coordinator; sign in by a token',
    );
  }

  async #session(c: BrowserContext): Promise<BrowserSession | null> {
    const sealed = readCookie(c, SESSION, this.#options.secure);
    if (sealed === undefined) return null;
    const session = await openSession(sealed, this.#key, this.#now());
    if (session !== null) return session;
    this.#options.refused('session');
    throw new Fault(
      'unauthenticated',
      'SESSION_ENDED',
      'the session has ended, or is not of this coordinator; sign in',
    );
  }

  #demandOwnRequest(c: BrowserContext, session: BrowserSession): void {
    demandOwnPage(c, this.#options.consoleUrl);
    if (isSameSecret(c.req.header(CSRF_HEADER) ?? '', session.csrf)) return;
    throw new Fault(
      'permission_denied',
      'CSRF_REQUIRED',
      `a request by session that changes something needs the header ${CSRF_HEADER} with the value that GET /auth/session gives`,
    );
  }

  #authenticate(c: BrowserContext, token: string): Principal | Promise<Principal> {
    return this.#options.authenticator.authenticate(`Bearer ${token}`, certificateOf(c.env.incoming.socket));
  }

  #oidc(): OidcSignIn {
    const { oidc } = this.#options;
    if (oidc !== null) return oidc;
    throw new Fault('not_found', 'OIDC_OFF', 'no provider is configured here (WRIT_CONSOLE_OIDC_ISSUER)');
  }

  #now(): number {
    return this.#options.nowMs?.() ?? wallClockMicros() / 1_000;
  }
}

function shown({ csrf, endsAtMs }: BrowserSession, { name, roles, namespaceRoles }: Principal): object {
  const places = [...(namespaceRoles ?? [])].map(([namespace, held]) => [namespace, [...held]] as const);
  return {
    csrf,
    expiresAt: new Date(endsAtMs).toISOString(),
    principal: { name, roles: [...roles], namespaceRoles: Object.fromEntries(places) },
  };
}
