import { type OidcAttempt, OidcFlow, type OidcSettings } from '../../auth/oidc-flow.js';
import { seal, sealKey, unseal } from '../../auth/sealed.js';
import { Fault } from '../../domain/fault.js';
import { wallClockMicros } from '../../platform/clock.js';
import { LineBudget } from '../../platform/line-budget.js';
import type { Logger } from '../../platform/log.js';
import { type CookieKind, clearCookie, readCookie, writeCookie } from './cookies.js';
import { addressedOrigin, type BrowserContext, isLoopbackUrl } from './own-origin.js';
import { NO_STORE, toldFault } from './problem.js';

export interface OidcSignInOptions {
  readonly provider: OidcSettings;
  /** As of the sessions. */
  readonly secret: Uint8Array;
  readonly consoleUrl: string | null;
  readonly secure: boolean;
  readonly log: Logger;
  readonly nowMs?: () => number;
}

/** What a sign-in that comes back needs of the sessions. */
interface Sessions {
  attempt(work: () => Promise<void>): Promise<void>;
  signIn(token: string): Promise<object>;
}

/** Another site sends the browser back here, so that `Strict` would keep it away. */
const ATTEMPT: CookieKind = { name: 'writ-sign-in', sameSite: 'Lax' };
const ATTEMPT_LIFE_MS = 10 * 60_000;
const CALLBACK = '/auth/oidc/callback';
const MAX_LINES_PER_SECOND = 5;
/** A path of this host: `//` and `/\` would be another one. */
const LOCAL_PATH = /^\/(?![/\\])[\x21-\x7e]{0,1024}$/;

/** Sign-in at an OpenID provider: there, back, and into the console. */
export class OidcSignIn {
  readonly #options: OidcSignInOptions;
  readonly #flow: OidcFlow;
  readonly #key: Uint8Array;
  readonly #lines = new LineBudget(MAX_LINES_PER_SECOND);

  constructor(options: OidcSignInOptions) {
    this.#options = options;
    this.#flow = new OidcFlow(options.provider);
    this.#key = sealKey(options.secret, 'sign-in at an issuer');
  }

  /** `return_to`: the path to come back to. */
  async start(c: BrowserContext): Promise<Response> {
    return this.#orTold(c, async () => {
      const { url, attempt } = await this.#flow.begin(this.#redirectUri(c));
      const asked = c.req.query('return_to') ?? '/';
      const returnTo = LOCAL_PATH.test(asked) ? asked : '/';
      const now = this.#now();
      const sealed = await seal({ ...attempt, returnTo }, now + ATTEMPT_LIFE_MS, this.#key);
      writeCookie(c, ATTEMPT, this.#options.secure, sealed, ATTEMPT_LIFE_MS);
      return goTo(c, url);
    });
  }

  async callback(c: BrowserContext, sessions: Sessions): Promise<Response> {
    return this.#orTold(c, async () => {
      const sealed = readCookie(c, ATTEMPT, this.#options.secure);
      clearCookie(c, ATTEMPT, this.#options.secure);
      // Pages of other sites can have a browser come here: that must not count against its address.
      const begun = sealed === undefined ? null : await unseal(sealed, this.#key, this.#now());
      if (begun === null) throw notBegun();
      const attempt = begun as unknown as OidcAttempt & { returnTo: string };
      await sessions.attempt(async () => {
        await sessions.signIn(await this.#flow.finish(new URL(c.req.url).searchParams, attempt));
      });
      return goTo(c, attempt.returnTo);
    });
  }

  /** The address is a person's: what went wrong is for the console to show, by its code. */
  async #orTold(c: BrowserContext, answer: () => Promise<Response>): Promise<Response> {
    try {
      return await answer();
    } catch (error) {
      const told = toldFault(error);
      if (told === null) throw error;
      const { metadata } = told.fault.details;
      if (this.#lines.take())
        this.#options.log.warn(
          { reason: told.reason, cause: metadata?.cause, err: told.fault.cause, ...this.#lines.suppressed() },
          'a sign-in at the provider failed',
        );
      return goTo(c, `/#sign-in-failed=${told.reason}`);
    }
  }

  /** Exactly the one that the provider knows; what a request says of its host could send the code elsewhere. */
  #redirectUri(c: BrowserContext): string {
    const { consoleUrl } = this.#options;
    if (consoleUrl !== null) return `${new URL(consoleUrl).origin}${CALLBACK}`;
    const addressed = addressedOrigin(c);
    if (addressed !== null && isLoopbackUrl(addressed)) return `${addressed.origin}${CALLBACK}`;
    throw new Fault(
      'failed_precondition',
      'CONSOLE_URL_REQUIRED',
      'to sign in at a provider, WRIT_CONSOLE_URL must say where browsers find the console',
    );
  }

  #now(): number {
    return this.#options.nowMs?.() ?? wallClockMicros() / 1_000;
  }
}

function notBegun(): Fault {
  return new Fault(
    'unauthenticated',
    'SIGN_IN_REJECTED',
    'this browser has begun no sign-in here within 10 minutes; begin again',
    { metadata: { cause: 'not_begun' } },
  );
}

/** The address that is left behind has a code in it. */
function goTo(c: BrowserContext, location: string): Response {
  return c.body(null, 303, { ...NO_STORE, 'referrer-policy': 'no-referrer', location });
}
